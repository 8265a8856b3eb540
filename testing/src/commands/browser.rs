//! `cargo xtask browser [--keep FOLDER]`: opens reports of `kwab` in a headless Chromium.
//!
//! Every dump and log of the repository becomes a page: it must render with its headline, run its script and violate
//! nothing of its policy. One page is used as a reader does: search, keys, timeline, theme, print. Then come dumps
//! whose every string is a script in one of the ways in which pages are attacked: none may run. That such a script
//! would run, and that the policy alone stops it, is shown with the same page without escapes, with and without its
//! policy. `--keep` leaves the pages and pictures of them, dark, light and on paper, in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use clap::Args;
use serde_json::json;

use crate::browser::Browser;
use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{binary, paths};

#[path = "../../../kwab-cli/tests/cli/common/hostile.rs"]
mod hostile;

/// What a hostile string tries: every one sets `window.marker` if it becomes more than text.
const ATTACKS: &[&str] = &[
    "<script>window.marker=1</script>",
    "</script><script>window.marker=1</script><!--",
    "</title></style></textarea><script>window.marker=1</script>",
    "<img src=x onerror=\"window.marker=1\">",
    "\"><svg onload=window.marker=1>",
    "' autofocus onfocus='window.marker=1' x='",
    "x onmouseover=window.marker=1 tabindex=1 autofocus onfocus=window.marker=1",
    "<a href=\"javascript:window.marker=1\" id=\"search\">x</a>",
    "<iframe srcdoc=\"<script>parent.marker=1</script>\"></iframe>",
    "</style><style>body{display:none}</style><link rel=stylesheet href=//x>",
    "<meta http-equiv=refresh content=\"0;url=javascript:window.marker=1\"><base href=//x>",
    "`${window.marker=1}` {{constructor.constructor('window.marker=1')()}}",
];

/// Where the dumps and logs are.
const FOLDERS: [&str; 6] = [
    "testing/dumps",
    "testing/data/logs",
    "testing/data/kaslr",
    "testing/data/one-death",
    "testing/data/timeline",
    "docs/first",
];

/// BrowserArguments of `browser`.
#[derive(Debug, Default, Args)]
pub struct BrowserArguments {
    /// Where pages and pictures go.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// Opens every page and says how many.
pub fn run(arguments: &BrowserArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Chromium], consent)?;
    let kwab = binary::kwab()?;
    let scratch = paths::build("browser")?;
    let folder = arguments.keep.clone().unwrap_or_else(|| scratch.join("pages"));
    fs::create_dir_all(&folder)?;
    let profile = scratch.join(format!("profile-{}", std::process::id()));
    fs::create_dir_all(&profile)?;
    let told = Pages { kwab, folder, browser: Browser::start(&profile)? }.all(arguments.keep.is_some());
    // What the browser left; a profile that stays costs only room.
    let _ = fs::remove_dir_all(&profile);
    println!("{}", told?);
    Ok(ExitCode::SUCCESS)
}

struct Pages {
    kwab: PathBuf,
    folder: PathBuf,
    browser: Browser,
}

impl Pages {
    fn all(mut self, pictures: bool) -> Result<String> {
        let mut sound = 0;
        for kind in FOLDERS {
            for input in files(&paths::root().join(kind))? {
                let page = self.report(&input)?;
                self.renders(&page).with_context(|| paths::shown(&input))?;
                sound += 1;
            }
        }
        let dump = paths::root().join("testing/dumps/tlb-shootdown.kwab");
        let page = self.report(&dump)?;
        self.is_usable(&page).context("used as a reader does")?;
        if pictures {
            self.pictures(&page)?;
        }
        let mut hostile = 0;
        for (number, attack) in ATTACKS.iter().enumerate() {
            for variant in 0..2 {
                let dump = self.folder.join(format!("attack-{number}-{variant}.kwab"));
                fs::write(&dump, hostile::dump_of(attack.as_bytes(), variant))?;
                let page = self.report(&dump)?;
                self.is_harmless(&page, attack).with_context(|| format!("attack {number}: {attack}"))?;
                hostile += 1;
            }
            hostile += self.hostile_log(number, attack)?;
        }
        self.policy_alone_stops_scripts()?;
        Ok(format!("{sound} pages render, {hostile} hostile ones run nothing of their dumps"))
    }

    fn report(&self, input: &Path) -> Result<PathBuf> {
        let name = input.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let page = self.folder.join(format!("{name}.html"));
        let status =
            Call::new(&self.kwab).arg("report").arg(input).arg("-o").arg(&page).arg("--force").capture_any()?;
        ensure!(matches!(status.status.code(), Some(0 | 3)), "kwab report: {}", status.stderr);
        let length = fs::metadata(&page)?.len();
        ensure!(length < 2_000_000, "{length} bytes");
        Ok(page)
    }

    /// Whether the value of an expression is true.
    fn holds(&mut self, expression: &str) -> Result<()> {
        let value = self.browser.value(expression)?;
        ensure!(value == json!(true), "`{expression}` is {value}");
        Ok(())
    }

    fn opened(&mut self, page: &Path) -> Result<()> {
        self.browser.open(page)?;
        let violations = self.browser.value("window.violations.join('; ')")?;
        ensure!(violations == json!(""), "the page violates its own policy: {violations}");
        Ok(())
    }

    /// The page shows its headline and parts, its style works and its script has run.
    fn renders(&mut self, page: &Path) -> Result<()> {
        self.opened(page)?;
        self.holds("document.title.length > 5 && document.querySelector('h1').textContent === document.title")?;
        self.holds("document.querySelectorAll('section').length >= 4 && document.querySelectorAll('.r').length > 10")?;
        self.holds("getComputedStyle(document.querySelector('header')).position === 'sticky'")?;
        self.holds("document.body.innerText.includes('Triage') && document.documentElement.scrollWidth <= innerWidth")?;
        self.holds("!document.getElementById('lanes') || document.querySelectorAll('#lanes svg path').length > 0")
    }

    fn is_usable(&mut self, page: &Path) -> Result<()> {
        self.opened(page)?;
        // Search.
        let shown = "Array.from(document.querySelectorAll('.r')).filter((row) => row.offsetParent).length";
        let before = self.browser.value(shown)?;
        self.browser.key("/")?;
        self.holds("document.activeElement.id === 'search'")?;
        self.browser.write("munmap CPU")?;
        self.holds("document.getElementById('found').textContent.includes(' rows')")?;
        self.holds(
            "Array.from(document.querySelectorAll('.r')).filter((row) => row.offsetParent)\
             .every((row) => row.textContent.toLowerCase().includes('munmap'))",
        )?;
        self.holds(&format!("{shown} > 0 && {shown} < {before}"))?;
        self.browser.key("Escape")?;
        self.holds(&format!("{shown} === {before}"))?;
        // Parts by key.
        self.browser.key("j")?;
        self.browser.key("j")?;
        self.holds("document.activeElement.tagName === 'SECTION' && scrollY > 0")?;
        // The timeline: a lane for each processor; zoom; the next event and its row.
        self.holds("['CPU 0', 'CPU 1'].every((name) => document.getElementById('lanes').innerText.includes(name))")?;
        self.browser.value("window.range = document.getElementById('range').textContent; 0")?;
        self.browser.key("+")?;
        self.holds("window.range !== document.getElementById('range').textContent")?;
        self.browser.key("0")?;
        self.holds("window.range === document.getElementById('range').textContent")?;
        self.browser.key("n")?;
        self.holds("/^\\d+\\.\\d{9} s  .+ before the death$/.test(document.getElementById('readout').textContent)")?;
        self.browser.key("Enter")?;
        self.holds("document.querySelectorAll('.seen').length === 1")?;
        self.knows_causes()?;
        // Dark and light.
        let background = "getComputedStyle(document.body).backgroundColor";
        for (scheme, color) in [("dark", "rgb(21, 23, 27)"), ("light", "rgb(255, 255, 255)")] {
            self.browser.show_as("screen", scheme)?;
            self.holds(&format!("{background} === '{color}'"))?;
        }
        self.browser.key("t")?;
        self.holds(&format!("{background} === 'rgb(21, 23, 27)'"))?;
        // Paper: light, without what only a screen needs.
        self.browser.show_as("print", "dark")?;
        self.holds(&format!("{background} === 'rgb(255, 255, 255)'"))?;
        self.holds("!document.querySelector('nav').offsetParent && !document.getElementById('search').offsetParent")?;
        self.holds("!!document.getElementById('triage').offsetParent")?;
        self.browser.show_as("screen", "light")?;
        self.holds("window.violations.length === 0")
    }

    /// Turns of threads are drawn as long as they took; a cause has its arrow, its line, and a way to it and back.
    fn knows_causes(&mut self) -> Result<()> {
        self.holds(
            "Array.from(document.querySelectorAll('#lanes path.slice')).some((one) => one.getBBox().width > 1)",
        )?;
        let woken = "Array.from(document.querySelectorAll('#causes tr[data-from]'))\
                     .find((row) => row.cells[0].textContent === 'wake → run')";
        self.browser.value(&format!("{woken}.click()"))?;
        let said = "document.getElementById('readout').textContent";
        self.browser.value(&format!("window.effect = {said}; 0"))?;
        self.holds(&format!("{said}.includes('context switch') && / for [0-9.]+ (ns|µs|ms|s)/.test({said})"))?;
        let line = "document.querySelector('#links button').textContent";
        self.holds(&format!("{line}.startsWith('← wake → run, ' + {woken}.cells[5].textContent)"))?;
        let arrow = "document.querySelector('#lanes svg.over path.flow').getBBox()";
        self.holds(&format!("{arrow}.width > 100"))?;
        self.holds("document.querySelector('#lanes svg.over').getBoundingClientRect().width > 500")?;
        self.browser.key("c")?;
        self.holds(&format!("{said}.includes('  wake') && {said} !== window.effect"))?;
        self.holds(&format!("{line}.startsWith('→ wake → run, ')"))?;
        self.browser.key("e")?;
        self.holds(&format!("{said} === window.effect"))?;
        self.browser.value("document.querySelector('#links button').click()")?;
        self.holds(&format!("{said}.includes('  wake')"))?;
        self.browser.key("0")
    }

    fn pictures(&mut self, page: &Path) -> Result<()> {
        self.opened(page)?;
        for (media, scheme) in [("screen", "light"), ("screen", "dark"), ("print", "light")] {
            self.browser.show_as(media, scheme)?;
            let picture = base64::engine::general_purpose::STANDARD.decode(self.browser.picture()?)?;
            fs::write(self.folder.join(format!("{media}-{scheme}.png")), picture)?;
        }
        self.browser.show_as("screen", "light")
    }

    /// The attack is there as text, and nothing of it ran: on loading, on focus, on moving over the page.
    fn is_harmless(&mut self, page: &Path, attack: &str) -> Result<()> {
        self.opened(page)?;
        self.holds("window.marker === undefined")?;
        // Text is shown without its spaces where a list of words is made of it.
        let word = attack.split(' ').max_by_key(|word| word.len()).unwrap_or(attack);
        self.holds(&format!("document.body.textContent.includes({})", json!(word)))?;
        self.holds(
            "document.querySelectorAll('script').length === 1 && document.querySelectorAll('style').length === 1 && \
             !document.querySelector('img, iframe, link, base, object, embed, form, [onerror], [onload], [onfocus], \
             [onmouseover], [style]') && !document.querySelector('a:not([href^=\"#\"])') && \
             document.querySelectorAll('#search').length === 1",
        )?;
        self.browser.value("document.querySelectorAll('[tabindex]').forEach((one) => one.focus()); 0")?;
        self.browser.key("/")?;
        self.browser.write("marker")?;
        self.holds("window.marker === undefined && window.violations.length === 0")?;
        self.holds("document.body.offsetHeight > 100")
    }

    /// A log of Linux whose process and functions have hostile names.
    fn hostile_log(&mut self, number: usize, attack: &str) -> Result<usize> {
        let text = paths::read(&paths::root().join("testing/data/logs/linux-6.1-sysrq-panic.log"))?;
        let log = self.folder.join(format!("attack-{number}.log"));
        let text = text.replace("Comm: init", &format!("Comm: {attack}"));
        let text = text.replace("sysrq triggered crash", attack).replace("sysrq_handle_crash", attack);
        fs::write(&log, text)?;
        let page = self.report(&log)?;
        self.is_harmless(&page, attack).with_context(|| format!("attack {number} in a log: {attack}"))?;
        Ok(1)
    }

    /// Without escapes, the policy stops the same script; without a policy too, it runs: the marker works.
    fn policy_alone_stops_scripts(&mut self) -> Result<()> {
        let page = self.report(&paths::root().join("testing/dumps/null-dereference.kwab"))?;
        let html = paths::read(&page)?;
        for attack in [ATTACKS[0], ATTACKS[3], ATTACKS[4]] {
            let open = html.replacen("<main>", &format!("<main>{attack}"), 1);
            let path = self.folder.join("unescaped.html");
            fs::write(&path, &open)?;
            self.browser.open(&path)?;
            self.holds("window.marker === undefined").with_context(|| format!("only the policy: {attack}"))?;
            self.holds("window.violations.length > 0").with_context(|| format!("a violation shows: {attack}"))?;
            fs::write(&path, open.replacen("Content-Security-Policy", "x", 1))?;
            self.browser.open(&path)?;
            self.browser.value("new Promise((done) => setTimeout(done, 100)); 0")?;
            self.holds("window.marker === 1").with_context(|| format!("neither: {attack}"))?;
        }
        Ok(())
    }
}

/// The dumps or logs of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| paths::shown(folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "kwab" || extension == "log"));
    files.sort();
    ensure!(!files.is_empty(), "nothing in {}", paths::shown(folder));
    Ok(files)
}
