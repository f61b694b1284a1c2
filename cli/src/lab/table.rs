//! Results as text: rows are workloads, columns are kernels.

use super::count::{Count, short};
use super::document::{Cell, Document, KernelResult, Outcome};
use std::fmt::Write;

/// The workload's column.
const NAME: usize = 18;

/// The whole text for a terminal of so many columns: all counts in one table if they fit, else the first one with its
/// ratios and the others below.
pub fn render(document: &Document, counts: &[Count], width: usize) -> String {
    let all = Table::new(document, counts, true);
    let mut tables = Vec::new();
    if counts.len() <= 1 || all.width() <= width {
        tables.push(all);
    } else {
        let (first, rest) = counts.split_at(1);
        tables.push(Table::new(document, first, true));
        let below = Table::new(document, rest, false);
        if below.width() <= width {
            tables.push(below);
        } else {
            tables.extend(rest.iter().map(|count| Table::new(document, std::slice::from_ref(count), false)));
        }
    }
    tables.iter().map(|table| table.text(document)).collect::<Vec<_>>().join("\n") + &notes(document)
}

/// A table of some counts.
struct Table<'a> {
    counts: &'a [Count],
    /// Whether the best figure is marked and ratios to the first kernel are shown; rows of zeros are left out otherwise.
    ratios: bool,
    groups: Vec<Group>,
}

impl<'a> Table<'a> {
    fn new(document: &Document, counts: &'a [Count], ratios: bool) -> Self {
        let groups = document.kernels.iter().map(|kernel| Group::new(document, kernel, counts, ratios)).collect();
        Self { counts, ratios, groups }
    }

    fn width(&self) -> usize {
        NAME + self.groups.iter().map(|group| group.width() + 2).sum::<usize>()
    }

    fn title(&self) -> String {
        let names = self.counts.iter().map(Count::name).collect::<Vec<_>>().join(", ");
        let first = self.groups.first().map_or("", |group| &group.name);
        match (self.ratios, self.groups.len()) {
            (true, 2..) => format!("{names} for one operation; * is the least, x the ratio to {first}"),
            (true, _) => format!("{names} for one operation"),
            (false, _) => format!("{names} for one operation; rows of zeros are left out"),
        }
    }

    fn text(&self, document: &Document) -> String {
        let mut text = format!("{}\n\n", self.title());
        let mut line = " ".repeat(NAME);
        for group in &self.groups {
            let _ = write!(line, "  {:>width$}", group.name, width = group.width());
        }
        text += line.trim_end();
        text += "\n";
        if self.counts.len() > 1 {
            let mut line = " ".repeat(NAME);
            for (index, group) in self.groups.iter().enumerate() {
                line += " ";
                for (head, width) in heads(self.ratios && index > 0, self.counts).iter().zip(&group.widths) {
                    let _ = write!(line, " {head:>width$}");
                }
            }
            text += line.trim_end();
            text += "\n";
        }
        for (index, name) in names(document).into_iter().enumerate() {
            if !self.ratios && self.groups.iter().all(|group| group.rows.get(index).is_none_or(Row::is_idle)) {
                continue;
            }
            let mut line = format!("{name:NAME$}");
            for group in &self.groups {
                line += " ";
                line += &group.rows.get(index).map(|row| row.text(group)).unwrap_or_default();
            }
            text += line.trim_end();
            text += "\n";
        }
        text
    }
}

/// One kernel's columns, each cell as text.
struct Group {
    name: String,
    rows: Vec<Row>,
    widths: Vec<usize>,
}

enum Row {
    Figures(Vec<String>),
    Word(String),
}

impl Row {
    /// Whether it has nothing but zeros.
    fn is_idle(&self) -> bool {
        match self {
            Row::Figures(figures) => figures.iter().all(|figure| figure.trim() == "0"),
            Row::Word(_) => true,
        }
    }

    fn text(&self, group: &Group) -> String {
        match self {
            Row::Figures(figures) => {
                figures.iter().zip(&group.widths).map(|(figure, width)| format!(" {figure:>width$}")).collect()
            }
            Row::Word(word) => {
                let width = group.width();
                let word = if word.chars().count() > width { word.split(' ').next().unwrap_or("") } else { word };
                format!(" {word:>width$}")
            }
        }
    }
}

/// The workloads in the order of the first kernel.
fn names(document: &Document) -> Vec<&str> {
    document.kernels.first().into_iter().flat_map(|kernel| &kernel.cells).map(|cell| cell.workload.as_str()).collect()
}

fn find<'a>(kernel: &'a KernelResult, name: &str) -> Option<&'a Cell> {
    kernel.cells.iter().find(|cell| cell.workload == name)
}

impl Group {
    fn new(document: &Document, kernel: &KernelResult, counts: &[Count], ratios: bool) -> Self {
        let is_first = document.kernels.first().is_some_and(|first| std::ptr::eq(first, kernel));
        let with_ratio = ratios && !is_first;
        let rows: Vec<Row> = names(document)
            .into_iter()
            .map(|name| match find(kernel, name) {
                Some(cell) => row(document, cell, counts, ratios, with_ratio),
                None => Row::Word("-".into()),
            })
            .collect();
        let mut widths: Vec<usize> = heads(with_ratio, counts).iter().map(String::len).collect();
        for row in &rows {
            if let Row::Figures(figures) = row {
                widths.iter_mut().zip(figures).for_each(|(width, figure)| *width = (*width).max(figure.len()));
            }
        }
        let mut group = Self { name: kernel.name.clone(), rows, widths };
        // A head that is wider than its columns widens the first one.
        let lacking = group.name.chars().count().saturating_sub(group.width());
        if let Some(width) = group.widths.first_mut() {
            *width += lacking;
        }
        group
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.widths.len().saturating_sub(1)
    }
}

/// What stands over the columns of a kernel.
fn heads(with_ratio: bool, counts: &[Count]) -> Vec<String> {
    let mut heads: Vec<String> = counts.iter().map(Count::head).collect();
    if with_ratio {
        heads.insert(1.min(heads.len()), String::new());
    }
    heads
}

fn row(document: &Document, cell: &Cell, counts: &[Count], ratios: bool, with_ratio: bool) -> Row {
    match &cell.outcome {
        Outcome::Lacks(reason) => return Row::Word(format!("n/a {reason}")),
        Outcome::Failed(_) => return Row::Word("failed".into()),
        Outcome::Counted { .. } => {}
    }
    let mut figures: Vec<String> = Vec::new();
    for (index, count) in counts.iter().enumerate() {
        let Some(own) = count.per_operation(cell) else { continue };
        if index > 0 || !ratios {
            figures.push(short(own));
            continue;
        }
        let all: Vec<f64> =
            document.kernels.iter().filter_map(|kernel| count.per_operation(find(kernel, &cell.workload)?)).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let best = all.len() > 1 && own <= least && all.iter().any(|other| *other > least);
        figures.push(format!("{}{}", short(own), if best { "*" } else { " " }));
        if with_ratio {
            let first = document.kernels.first().and_then(|kernel| count.per_operation(find(kernel, &cell.workload)?));
            figures.push(first.filter(|first| *first > 0.0).map_or(String::new(), |first| ratio(own / first)));
        }
    }
    Row::Figures(figures)
}

fn ratio(value: f64) -> String {
    if value < 99.95 { format!("{value:.2}x") } else { format!("{value:.0}x") }
}

/// What the cells could not say.
fn notes(document: &Document) -> String {
    let mut text = String::new();
    for kernel in &document.kernels {
        if let Some(failure) = &kernel.failure {
            let _ = writeln!(text, "{}: {failure}", kernel.name);
            continue;
        }
        for cell in &kernel.cells {
            if let Outcome::Failed(reason) = &cell.outcome {
                let _ = writeln!(text, "{}: {} failed: {reason}", kernel.name, cell.workload);
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Columns of the terminal that standard output is, or of `$COLUMNS`; 100 elsewhere.
pub fn columns() -> usize {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .or(from_environment)
        .unwrap_or(100)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::lab::document::MachineInfo;
    use model::Region;

    fn cell(workload: &str, instructions: u64, fences: u64) -> Cell {
        let mut region = Region { complete: true, ..Region::default() };
        region.total.kernel.instructions = instructions;
        region.total.kernel.sfence_all = fences;
        Cell {
            workload: workload.into(),
            operations: 10,
            harts: 1,
            outcome: Outcome::Counted { nanoseconds: 1.0, spurious: None, lock_waits: None, region: Box::new(region) },
        }
    }

    fn kernel(name: &str, cells: Vec<Cell>) -> KernelResult {
        KernelResult {
            name: name.into(),
            version: "1".into(),
            hash: String::new(),
            arguments: String::new(),
            qemu: Vec::new(),
            failure: None,
            cells,
        }
    }

    /// Two kernels and three workloads, one of which the second kernel lacks.
    pub fn sample() -> Document {
        let lacking = Cell { outcome: Outcome::Lacks("ENOSYS".into()), ..cell("hwprobe", 0, 0) };
        let failed = Cell { outcome: Outcome::Failed("no end within 9 s".into()), ..cell("fork", 0, 0) };
        Document {
            format: Document::FORMAT,
            revision: "abc".into(),
            command: Vec::new(),
            machine: MachineInfo { cpu: "v=true".into(), smp: 1, mem: "1G".into(), tree: Vec::new(), settled: true },
            versions: Default::default(),
            hashes: Default::default(),
            kernels: vec![
                kernel("limen", vec![cell("null", 710, 0), cell("hwprobe", 320, 0), cell("fork", 999_990, 3)]),
                kernel("linux-6.12", vec![cell("null", 4_290, 10), lacking, failed]),
            ],
        }
    }

    #[test]
    fn a_table_of_two_kernels() {
        let counts = ["instructions", "sfence"].map(|name| Count::parse(name).unwrap());
        let expected = "\
instructions, sfence for one operation; * is the least, x the ratio to limen

                            limen          linux-6.12
                     instr sfence  instr       sfence
null                   71*      0   429  6.04x      1
hwprobe                32       0          n/a ENOSYS
fork                99999    0.30              failed

linux-6.12: fork failed: no end within 9 s
";
        assert_eq!(render(&sample(), &counts, 80), expected);
        let narrow = render(&sample(), &counts, 40);
        let below = "\
sfence for one operation; rows of zeros are left out

                     limen  linux-6.12
null                     0           1
fork                  0.30      failed
";
        assert!(narrow.contains(below), "{narrow}");
    }
}
