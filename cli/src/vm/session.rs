//! One boot, from starting QEMU to knowing how the program ended.

use super::console::{Console, Piece};
use super::image::Image;
use super::machine::Machine;
use super::symbols::Symbols;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// End of input on a terminal, at the start of a line.
const END_OF_INPUT: u8 = 4;
/// How long an answer takes.
const MOMENT: Duration = Duration::from_millis(20);
/// How long the machine may take to power off once the program has ended, or to finish its panic report.
const GRACE: Duration = Duration::from_secs(10);

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The program ended with this status (128 + signal if it was killed).
    Exit(u8),
    /// The kernel panicked.
    Panic,
    /// The machine stopped without a word about the program.
    Silent,
    /// QEMU itself failed, and said why.
    Emulator,
    /// Time was up.
    Timeout,
}

impl End {
    /// The status of the command.
    pub fn status(&self) -> u8 {
        match self {
            End::Exit(status) => *status,
            End::Panic => 101,
            End::Silent => 102,
            End::Timeout => 124,
            End::Emulator => crate::OWN_FAILURE,
        }
    }
}

/// What the guest's console reads.
#[derive(Clone, Debug)]
pub enum Input {
    /// The terminal of this command, handed to QEMU.
    Terminal,
    /// Standard input of this command, from the program's start on, then end of input.
    Standard,
    /// These bytes, then end of input.
    Bytes(Vec<u8>),
    /// These bytes for each question mark that the program writes, after a moment in which it can go to sleep.
    Answers(Vec<u8>),
    /// Nothing, not even an end: what comes from outside comes at a time of its own, so that runs would not repeat.
    Nothing,
}

/// Where the pieces of the console go.
pub trait Output {
    /// From the program.
    fn program(&mut self, bytes: &[u8]);
    /// From firmware and kernel.
    fn around(&mut self, bytes: &[u8]);
    /// A line of a panic report, addresses named, or of our own about the end.
    fn report(&mut self, line: &str);
}

/// Boots `image` with the archive `root` and stays until the machine has ended.
///
/// # Errors
/// QEMU cannot be started.
pub fn run(
    qemu: &Path,
    machine: &Machine,
    image: &Image,
    root: &Path,
    input: Input,
    timeout: Option<Duration>,
    output: &mut dyn Output,
) -> Result<End> {
    let mut command = machine.command(qemu, &image.file, root)?;
    command.stdin(if matches!(input, Input::Terminal) { Stdio::inherit() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = start(&mut command)?;
    let mut session = Session {
        child,
        image,
        console: Console::new(image.is_limen),
        symbols: None,
        input: Some(input),
        questions: None,
        end: None,
        deadline: timeout.map(|limit| Instant::now() + limit),
    };
    let chunks = session.readers();
    session.pump(&chunks, output)
}

fn start(command: &mut Command) -> Result<Child> {
    if crate::report::level() >= 2 {
        eprintln!("limen: + {command:?}");
    }
    command.spawn().context("cannot start QEMU")
}

struct Session<'a> {
    child: Child,
    image: &'a Image,
    console: Console,
    symbols: Option<Option<Symbols>>,
    input: Option<Input>,
    /// Whoever answers questions.
    questions: Option<mpsc::Sender<()>>,
    end: Option<End>,
    deadline: Option<Instant>,
}

enum Chunk {
    Console(Vec<u8>),
    Emulator(Vec<u8>),
}

impl Session<'_> {
    /// Threads that read both outputs of QEMU; the channel closes when both have ended.
    fn readers(&mut self) -> Receiver<Chunk> {
        let (sender, receiver) = mpsc::sync_channel(64);
        let spawn = |stream: Option<Box<dyn Read + Send>>, wrap: fn(Vec<u8>) -> Chunk| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let Some(mut stream) = stream else { return };
                let mut buffer = vec![0; 1 << 16];
                while let Ok(count) = stream.read(&mut buffer) {
                    if count == 0 || sender.send(wrap(buffer[..count].to_vec())).is_err() {
                        return;
                    }
                }
            });
        };
        spawn(self.child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), Chunk::Console);
        spawn(self.child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), Chunk::Emulator);
        receiver
    }

    fn pump(&mut self, chunks: &Receiver<Chunk>, output: &mut dyn Output) -> Result<End> {
        // What QEMU itself says comes in pieces of lines.
        let mut said = Vec::new();
        loop {
            let chunk = match self.deadline {
                None => chunks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match chunk {
                Ok(Chunk::Console(bytes)) => {
                    let pieces = self.console.feed(&bytes);
                    self.pieces(pieces, output);
                }
                Ok(Chunk::Emulator(bytes)) => {
                    said.extend(bytes);
                    if let Some(end) = said.iter().rposition(|byte| *byte == b'\n') {
                        let lines: Vec<u8> = said.drain(..=end).collect();
                        output.report(String::from_utf8_lossy(&lines).trim_end());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.stop();
                    self.end.get_or_insert(End::Timeout);
                    break;
                }
            }
        }
        let pieces = self.console.finish();
        self.pieces(pieces, output);
        if !said.is_empty() {
            output.report(&String::from_utf8_lossy(&said));
        }
        if let (Ok(status), None) = (self.child.wait(), &self.end)
            && !status.success()
        {
            output.report(&format!("QEMU ended with {status}"));
            return Ok(End::Emulator);
        }
        Ok(self.end.take().unwrap_or(End::Silent))
    }

    fn pieces(&mut self, pieces: Vec<Piece>, output: &mut dyn Output) {
        for piece in pieces {
            match piece {
                Piece::Around(bytes) => output.around(&bytes),
                Piece::Program(bytes) => {
                    if let Some(questions) = &self.questions {
                        for _ in bytes.iter().filter(|byte| **byte == b'?') {
                            // Nobody is left to answer once QEMU has closed its input.
                            let _ = questions.send(());
                        }
                    }
                    output.program(&bytes);
                }
                Piece::Start => self.send_input(),
                Piece::Exit(status) => self.ending(End::Exit(status)),
                Piece::Panic(line) => {
                    if self.end != Some(End::Panic) {
                        self.end = None;
                        self.ending(End::Panic);
                    }
                    output.report(&self.symbols().map_or_else(|| line.clone(), |symbols| symbols.explain(&line)));
                }
            }
        }
    }

    /// The outcome is known; what is left to do may take only so long.
    fn ending(&mut self, end: End) {
        self.end.get_or_insert(end);
        let latest = Instant::now() + GRACE;
        self.deadline = Some(self.deadline.map_or(latest, |deadline| deadline.min(latest)));
    }

    fn symbols(&mut self) -> Option<&Symbols> {
        let file = &self.image.file;
        self.symbols.get_or_insert_with(|| Symbols::read(file).ok()).as_ref()
    }

    /// Gives the program its input; from now on, since firmware and kernel would have eaten it.
    fn send_input(&mut self) {
        let Some(mut pipe) = self.child.stdin.take() else {
            return;
        };
        let input = self.input.take();
        let (sender, questions) = mpsc::channel();
        self.questions = matches!(input, Some(Input::Answers(_))).then_some(sender);
        std::thread::spawn(move || {
            let mut last = b'\n';
            let mut send = |bytes: &[u8]| pipe.write_all(bytes).and_then(|()| pipe.flush()).is_ok();
            match input {
                Some(Input::Bytes(bytes)) => {
                    last = bytes.last().copied().unwrap_or(last);
                    send(&bytes);
                }
                Some(Input::Standard) => {
                    let mut buffer = vec![0; 4096];
                    let mut standard = std::io::stdin().lock();
                    while let Ok(count) = standard.read(&mut buffer) {
                        let Some(&end) = buffer[..count].last() else {
                            break;
                        };
                        last = end;
                        if !send(&buffer[..count]) {
                            break;
                        }
                    }
                }
                Some(Input::Answers(answer)) => {
                    while questions.recv().is_ok() {
                        std::thread::sleep(MOMENT);
                        if !send(&answer) {
                            break;
                        }
                    }
                    std::mem::forget(pipe);
                    return;
                }
                Some(Input::Nothing) => {
                    std::mem::forget(pipe);
                    return;
                }
                _ => {}
            }
            // Within a line the first one only ends the read.
            let ends: &[u8] = if last == b'\n' { &[END_OF_INPUT] } else { &[END_OF_INPUT, END_OF_INPUT] };
            send(ends);
            // The pipe stays open: QEMU would otherwise keep polling a closed one.
            std::mem::forget(pipe);
        });
    }

    /// Ends QEMU: politely first, so that it restores the terminal.
    fn stop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        for _ in 0..20 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
    }
}
