//! Opens pages in a headless Chromium and asks them questions, through its DevTools protocol on a pipe.
//!
//! Messages are JSON that ends with a zero byte. Before a page's own script, and outside its content security policy, a
//! script of ours records every violation of that policy: a script of a dump that was refused shows, and one that ran
//! leaves its mark. The browser has no network: it is told to resolve no name.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::process::Call;

/// The longest that an answer may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Records violations of the page's policy in `window.violations`.
const WATCH: &str = "window.violations = []; document.addEventListener('securitypolicyviolation', \
    (event) => window.violations.push(`${event.effectiveDirective} ${event.sample || event.blockedURI}`));";

/// A running browser with one tab; it ends when this is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    sent: u64,
}

impl Browser {
    /// Starts Chromium with a profile of its own in `folder`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub fn start(folder: &Path) -> Result<Self> {
        let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                       --disable-background-networking --disable-component-update \
                       --host-resolver-rules='MAP * ~NOTFOUND' --window-size=1400,1000 --remote-debugging-pipe";
        // The browser reads descriptor 3 and writes descriptor 4.
        let line =
            format!("exec chromium {options} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1");
        let mut child = Call::new("sh").args(["-c", &line, "sh"]).arg(folder).converse()?;
        let input = child.stdin.take().context("no pipe to the browser")?;
        let output = child.stdout.take().context("no pipe from the browser")?;
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Ok(bytes) = message else { return };
                let Ok(value) = serde_json::from_slice(&bytes) else { continue };
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, input, messages, session: String::new(), sent: 0 };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &attach)?;
        attached["sessionId"].as_str().unwrap_or_default().clone_into(&mut browser.session);
        browser.ask("Page.enable", &json!({}))?;
        browser.ask("Page.addScriptToEvaluateOnNewDocument", &json!({"source": WATCH}))?;
        Ok(browser)
    }

    /// Loads a file and waits until it is complete.
    ///
    /// # Errors
    /// When it does not load in time.
    pub fn open(&mut self, page: &Path) -> Result<()> {
        let page = page.canonicalize().with_context(|| format!("no page {}", page.display()))?;
        self.send("Page.navigate", &json!({"url": format!("file://{}", page.display())}))?;
        self.wait(|message| message["method"] == "Page.loadEventFired").map(drop)
    }

    /// The value of an expression of the page.
    ///
    /// # Errors
    /// When it throws.
    pub fn value(&mut self, expression: &str) -> Result<Value> {
        let mut answer = self.ask("Runtime.evaluate", &json!({"expression": expression, "returnByValue": true}))?;
        if !answer["exceptionDetails"].is_null() {
            bail!("`{expression}` threw: {}", answer["exceptionDetails"]);
        }
        Ok(answer["result"]["value"].take())
    }

    /// Presses and releases a key; `text` is what it types, if anything.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn key(&mut self, key: &str) -> Result<()> {
        let text = if key.chars().count() == 1 { key } else { "" };
        self.ask("Input.dispatchKeyEvent", &json!({"type": "keyDown", "key": key, "text": text}))?;
        self.ask("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key})).map(drop)
    }

    /// Types a text where the focus is.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.ask("Input.insertText", &json!({"text": text})).map(drop)
    }

    /// Shows the page as on `media` (`screen`, `print`) in a colour scheme (`dark`, `light`).
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn show_as(&mut self, media: &str, scheme: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"media": media, "features": features})).map(drop)
    }

    /// A picture of the whole page as PNG, in base 64.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn picture(&mut self) -> Result<String> {
        let answer = self.ask("Page.captureScreenshot", &json!({"format": "png", "captureBeyondViewport": true}))?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let number = self.send(method, parameters)?;
        let mut answer = self.wait(|message| message["id"] == number).with_context(|| method.to_owned())?;
        if !answer["error"].is_null() {
            bail!("{method}: {}", answer["error"]);
        }
        Ok(answer["result"].take())
    }

    fn send(&mut self, method: &str, parameters: &Value) -> Result<u64> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).and_then(|()| self.input.flush()).context("the browser is gone")?;
        Ok(self.sent)
    }

    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).context("the browser does not answer")?;
            if wanted(&message) {
                return Ok(message);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell was replaced by the browser, whose other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
