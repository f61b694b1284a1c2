//! The host's apt sources, both formats: where its Debian mirrors are and what is taken from them.

use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// One source of binary packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Address as written.
    pub uri: String,
    /// Suites or code names.
    pub suites: Vec<String>,
    /// Components; `main` matters here.
    pub components: Vec<String>,
    /// Key file, if the source names one.
    pub signed_by: Option<String>,
}

const CODENAMES: [&str; 12] = [
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "unstable",
    "testing",
    "stable",
    "oldstable",
    "oldoldstable",
];

impl Source {
    /// A Debian archive proper: some suite is a Debian release (or its updates), none of security's.
    fn is_debian_archive(&self) -> bool {
        self.is_debian() && !self.suites.iter().any(|suite| suite.ends_with("-security") || suite.contains('/'))
    }

    fn is_debian(&self) -> bool {
        self.components.iter().any(|component| component == "main")
            && !self.uri.starts_with("cdrom:")
            && self.suites.iter().any(|suite| {
                CODENAMES.iter().any(|name| {
                    suite.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
                })
            })
    }

    /// The source as a DEB822 stanza.
    pub fn stanza(&self) -> String {
        let signed = self.signed_by.as_ref().map_or(String::new(), |key| format!("Signed-By: {key}\n"));
        format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: {}\n{signed}\n",
            self.uri,
            self.suites.join(" "),
            self.components.join(" ")
        )
    }
}

/// All Debian sources of the host's configuration, in `/etc/apt` or where `root` says.
pub fn host(root: &Path) -> Vec<Source> {
    let mut files = vec![root.join("sources.list")];
    if let Ok(entries) = fs::read_dir(root.join("sources.list.d")) {
        let mut more: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        more.sort();
        files.extend(more);
    }
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|ext| ext.to_str()) {
            Some("list") => found.extend(parse_lines(&text)),
            Some("sources") => found.extend(parse_stanzas(&text)),
            _ => {}
        }
    }
    found.retain(Source::is_debian);
    found
}

/// The address and key of the Debian archive among `sources`, preferring one that carries `codename`.
///
/// # Errors
/// There is none: the message says what to set.
pub fn archive(sources: &[Source], codename: &str) -> Result<Source> {
    if let Ok(uri) = std::env::var("LIMEN_DEBIAN_MIRROR") {
        return Ok(Source { uri, suites: vec![codename.into()], components: vec!["main".into()], signed_by: None });
    }
    let best = |source: &&Source| source.is_debian_archive() && source.suites.iter().any(|suite| suite == codename);
    match sources.iter().find(best).or_else(|| sources.iter().find(|source| source.is_debian_archive())) {
        Some(source) => Ok(source.clone()),
        None => {
            bail!("no Debian archive in this host's apt configuration; set LIMEN_DEBIAN_MIRROR to the address of one")
        }
    }
}

/// One-line format: `deb [options] uri suite component…`.
fn parse_lines(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let mut rest = line.strip_prefix("deb")?.strip_prefix([' ', '\t'])?.trim_start();
    let mut signed_by = None;
    if let Some(options) = rest.strip_prefix('[') {
        let (inside, after) = options.split_once(']')?;
        signed_by = inside.split_whitespace().find_map(|option| option.strip_prefix("signed-by=")).map(str::to_owned);
        rest = after;
    }
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source { uri: words.next()?, suites: vec![words.next()?], components: words.collect(), signed_by })
}

/// DEB822 format: stanzas of fields; a field continues on lines that begin with a blank.
fn parse_stanzas(text: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in lines.split(|line| line.trim().is_empty()) {
        let field = |name: &str| -> Vec<String> {
            let mut words = Vec::new();
            let mut inside = false;
            for line in stanza {
                if line.starts_with([' ', '\t']) {
                    if inside {
                        words.extend(line.split_whitespace().map(str::to_owned));
                    }
                    continue;
                }
                let (key, value) = line.split_once(':').unwrap_or((line, ""));
                inside = key.trim().eq_ignore_ascii_case(name);
                if inside {
                    words.extend(value.split_whitespace().map(str::to_owned));
                }
            }
            words
        };
        let enabled =
            !field("Enabled").iter().any(|word| ["no", "false", "0", "off"].contains(&word.to_lowercase().as_str()));
        if !enabled || !field("Types").iter().any(|word| word == "deb") {
            continue;
        }
        // A key given inline spans lines and cannot be a file name: left out, the archive's own key ring serves.
        let signed_by = Some(field("Signed-By")).filter(|words| words.len() == 1).and_then(|mut words| words.pop());
        for uri in field("URIs") {
            found.push(Source {
                uri,
                suites: field("Suites"),
                components: field("Components"),
                signed_by: signed_by.clone(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "Types: deb deb-src\n# a comment\nURIs: http://mirror.test/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\n\
        Types: deb\nURIs: http://other.test/tool\nSuites: nodistro\nComponents: main\n\nTypes: deb\nEnabled: no\nURIs: http://off.test/debian\nSuites: bookworm\nComponents: main\n";

    #[test]
    fn stanzas_of_debian_are_kept() {
        let found: Vec<_> = parse_stanzas(STANZAS).into_iter().filter(Source::is_debian).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(found[0].signed_by.as_deref(), Some("/k.gpg"));
    }

    #[test]
    fn one_line_entries_with_options() {
        let found = parse_lines(
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror.test/debian trixie main contrib # c\n# deb http://x y z\ndeb-src http://a b c\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].uri.as_str(), found[0].suites[0].as_str()), ("http://mirror.test/debian", "trixie"));
        assert_eq!(found[0].components, ["main", "contrib"]);
    }

    #[test]
    fn security_is_not_the_archive() {
        let sources = parse_lines(
            "deb http://s.test/debian-security bookworm-security main\ndeb http://m.test/debian bookworm main\n",
        );
        assert_eq!(archive(&sources, "bookworm").unwrap().uri, "http://m.test/debian");
        assert!(archive(&sources[..1], "bookworm").is_err());
    }
}
