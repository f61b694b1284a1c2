//! What the kernel put on the first stack: arguments, environment, auxiliary vector (execve(2), getauxval(3)).

use core::ffi::{CStr, c_char};

/// The program's arguments. The strings live as long as the program.
#[derive(Clone, Copy)]
pub struct Args {
    stack: *const usize,
}

impl Args {
    /// # Safety
    /// `stack` is the stack pointer a program starts with, and what lies there is unchanged.
    pub(crate) const unsafe fn new(stack: *const usize) -> Self {
        Self { stack }
    }

    fn word(&self, index: usize) -> usize {
        // SAFETY: `new`'s caller promised the start block; the methods below stay within its counted or
        // zero-terminated parts.
        unsafe { self.stack.add(index).read() }
    }

    /// Number of arguments, the program's name included.
    pub fn count(&self) -> usize {
        self.word(0)
    }

    /// The arguments, the program's name first.
    pub fn iter(&self) -> impl Iterator<Item = &'static CStr> + use<> {
        let this = *self;
        (1..=self.count()).map(move |index| this.string(index))
    }

    /// Argument `index`.
    pub fn get(&self, index: usize) -> Option<&'static CStr> {
        (index < self.count()).then(|| self.string(index + 1))
    }

    /// Where the pointer to argument `index` lies: the rest of the arguments as execve(2) takes them.
    pub fn pointer(&self, index: usize) -> *const *const c_char {
        // SAFETY: argc comes before the arguments in the same block, and a null pointer after them.
        unsafe { self.stack.add(1 + index.min(self.count())).cast() }
    }

    /// The environment's strings, `NAME=value`.
    pub fn environment(&self) -> impl Iterator<Item = &'static CStr> + use<> {
        let this = *self;
        (self.count() + 2..).take_while(move |index| this.word(*index) != 0).map(move |index| this.string(index))
    }

    /// The environment as execve(2) takes it.
    pub fn environment_pointer(&self) -> *const *const c_char {
        // SAFETY: argc, argv and its null come before the environment in the same block.
        unsafe { self.stack.add(self.count() + 2).cast() }
    }

    /// The value of an entry of the auxiliary vector.
    pub fn auxv(&self, key: usize) -> Option<usize> {
        let mut index = self.count() + 2;
        while self.word(index) != 0 {
            index += 1;
        }
        index += 1;
        while self.word(index) != 0 {
            if self.word(index) == key {
                return Some(self.word(index + 1));
            }
            index += 2;
        }
        None
    }

    fn string(&self, index: usize) -> &'static CStr {
        // SAFETY: the words of argv and envp point to strings ended by zero bytes, which stay for the program's life.
        unsafe { CStr::from_ptr(self.word(index) as *const c_char) }
    }
}
