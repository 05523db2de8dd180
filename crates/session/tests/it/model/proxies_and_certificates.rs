//! The way to a model's server: through the certificate authorities and the proxies of a client's
//! environment.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{Certificates, ModelSettings, Proxies};
use holdpoint_session::model::{Access, Model, ModelError, Provider};
use holdpoint_tests::model_answer::{ask, hello, text};
use holdpoint_tests::model_server::{ModelServer, Reply};
use holdpoint_tests::proxy_server::{Kind, ProxyRequest, ProxyServer};
use holdpoint_tests::tls_server::{Authority, TlsServer};
use holdpoint_tests::world::KEY;
use tempfile::TempDir;

/// A TLS server that answers `hi`, with a certificate from an authority of its own.
struct TlsSetup {
    server: ModelServer,
    ca: Authority,
    tls: TlsServer,
    folder: TempDir,
}

impl TlsSetup {
    /// With a certificate for these names and addresses.
    fn new(names: &[&str]) -> Self {
        let (server, ca) = (ModelServer::start(), Authority::new("ours"));
        server.answer(|_| Reply::text(["hi"]));
        let tls = TlsServer::signed(&ca, names, server.address());
        let place = Self { server, ca, tls, folder: TempDir::new().unwrap() };
        fs::write(place.path("ca.pem"), place.ca.pem()).unwrap();
        place
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn trusting(&self) -> Certificates {
        file(&self.path("ca.pem"))
    }

    /// A model on 127.0.0.1.
    fn local(&self, certificates: &Certificates) -> Arc<dyn Model> {
        model(&format!("https://{}/v1", self.tls.address), certificates, &Proxies::default())
    }
}

fn file(path: &str) -> Certificates {
    Certificates { file: Some(path.to_owned()), dir: None }
}

fn dir(path: &str) -> Certificates {
    Certificates { file: None, dir: Some(path.to_owned()) }
}

fn model(base_url: &str, certificates: &Certificates, proxies: &Proxies) -> Arc<dyn Model> {
    let (certificates, proxies) = (certificates.clone(), proxies.clone());
    let access = Access { key: KEY.into(), base_url: base_url.to_owned(), certificates, proxies };
    Provider::OpenAi.model("scripted", &access, &ModelSettings::default()).unwrap()
}

#[track_caller]
fn answered(events: &[holdpoint_tests::model_answer::AnswerItem]) {
    assert_eq!(events[0], text("hi"), "{events:?}");
}

/// The message and the hint of an error of the set-up.
#[track_caller]
fn setup(events: &[holdpoint_tests::model_answer::AnswerItem]) -> String {
    match events {
        [Err(error @ ModelError::Setup { message, hint })] => {
            assert!(!error.is_temporary());
            format!("{message} (hint: {hint})")
        }
        _ => panic!("{events:?}"),
    }
}

#[tokio::test]
async fn m_e2_a_client_trusts_the_authorities_it_names_and_no_others() {
    let place = TlsSetup::new(&["127.0.0.1"]);
    let (ours, theirs) = (place.ca.pem(), Authority::new("theirs").pem());
    fs::write(place.path("theirs.pem"), &theirs).unwrap();
    fs::write(
        place.path("bundle.pem"),
        format!("# Two authorities\n{theirs}\nWords between them.\n{ours}"),
    )
    .unwrap();
    let folder = |name: &str, pems: &[(&str, &str)]| {
        let folder = place.path(name);
        fs::create_dir(&folder).unwrap();
        for (n, (name, pem)) in pems.iter().enumerate() {
            fs::write(Path::new(&folder).join(name), pem).unwrap();
            symlink(name, Path::new(&folder).join(format!("0a1b2c3{n}.0"))).unwrap();
        }
        symlink("nowhere", Path::new(&folder).join("0a1b2c3f.0")).unwrap();
        fs::create_dir(Path::new(&folder).join("private")).unwrap();
        folder
    };
    let both =
        folder("both", &[("theirs.pem", &theirs), ("README", "nothing"), ("ours.pem", &ours)]);
    let other = folder("other", &[("theirs.pem", &theirs)]);
    let several = format!("{}:{other}:{both}", place.path("missing"));
    let beside = Certificates { dir: Some(both.clone()), ..file(&place.path("theirs.pem")) };
    let without_folder = Certificates { dir: Some(place.path("missing")), ..place.trusting() };
    for trusts in [
        place.trusting(),
        file(&place.path("bundle.pem")),
        dir(&both),
        dir(&several),
        beside,
        without_folder,
    ] {
        answered(&ask(&*place.local(&trusts), hello()).await);
    }
    let asked = place.server.requests().len();
    let system = Certificates::default();
    for (distrusts, named) in [
        (system, "SSL_CERT_FILE".to_owned()),
        (file(&place.path("theirs.pem")), format!("SSL_CERT_FILE ({})", place.path("theirs.pem"))),
        (dir(&other), format!("SSL_CERT_DIR ({other})")),
    ] {
        let failure = setup(&ask(&*place.local(&distrusts), hello()).await);
        assert!(failure.contains("UnknownIssuer") && failure.contains(&named), "{failure}");
    }
    assert_eq!(place.server.requests().len(), asked);
}

#[tokio::test]
async fn m_e2_certificates_that_cannot_be_read_are_named_and_read_again() {
    let place = TlsSetup::new(&["127.0.0.1"]);
    fs::write(place.path("words"), "-----BEGIN NOTHING-----\n").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    fs::write(place.path("locked"), place.ca.pem()).unwrap();
    fs::set_permissions(place.path("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::File::open(place.path("locked")).is_ok();
    for (variable, name, why) in [
        ("SSL_CERT_FILE", "missing", "No such file"),
        ("SSL_CERT_FILE", "folder", "not a file"),
        ("SSL_CERT_FILE", "pipe", "not a file"),
        ("SSL_CERT_FILE", "words", "no certificate"),
        ("SSL_CERT_FILE", "locked", "Permission denied"),
        ("SSL_CERT_DIR", "missing", "No such file"),
        ("SSL_CERT_DIR", "words", "Not a directory"),
        ("SSL_CERT_DIR", "folder", "no certificate"),
    ] {
        if is_root && name == "locked" {
            continue;
        }
        let path = place.path(name);
        let certificates = if variable == "SSL_CERT_FILE" { file(&path) } else { dir(&path) };
        let failure = setup(&ask(&*place.local(&certificates), hello()).await);
        let hint = failure.split_once("(hint: ").unwrap().1;
        assert!(
            failure.contains(variable) && failure.contains(&path) && failure.contains(why),
            "{failure}"
        );
        assert!(hint.contains(&format!("set {variable}")), "{failure}");
    }
    // Plain HTTP needs no certificates.
    let plain = model(&place.server.base_url(), &file("/missing"), &Proxies::default());
    answered(&ask(&*plain, hello()).await);
    // The next request finds the file that was missing, or another authority in it.
    let path = place.path("late.pem");
    let late = place.local(&file(&path));
    assert!(setup(&ask(&*late, hello()).await).contains("No such file"));
    fs::write(&path, Authority::new("theirs").pem()).unwrap();
    assert!(setup(&ask(&*late, hello()).await).contains("UnknownIssuer"));
    fs::write(&path, place.ca.pem()).unwrap();
    answered(&ask(&*late, hello()).await);
}

fn asked(target: &str, login: Option<&str>) -> ProxyRequest {
    ProxyRequest { target: target.to_owned(), login: login.map(str::to_owned) }
}

/// One proxy for all requests.
fn all(address: String) -> Proxies {
    Proxies { all: Some(address), ..Proxies::default() }
}

#[tokio::test]
async fn m_e2_https_goes_through_a_proxy_that_tunnels() {
    let place = TlsSetup::new(&["models.invalid"]);
    let trusting = place.trusting();
    let open = ProxyServer::start(Kind::Http, place.tls.address);
    let locked = ProxyServer::locked(Kind::Http, place.tls.address, "me:p@ss/wörd");
    let (base, of) = ("https://models.invalid/v1", |login: &str, proxy: &ProxyServer| Proxies {
        https: Some(format!("http://{login}{}", proxy.address)),
        ..Proxies::default()
    });
    answered(&ask(&*model(base, &trusting, &of("", &open)), hello()).await);
    answered(&ask(&*model(base, &trusting, &all(open.address.to_string())), hello()).await);
    assert_eq!(
        open.asked(),
        [asked("models.invalid:443", None), asked("models.invalid:443", None)]
    );
    answered(&ask(&*model(base, &trusting, &of("me:p%40ss%2Fw%C3%B6rd@", &locked)), hello()).await);
    assert_eq!(locked.asked(), [asked("models.invalid:443", Some("me:p@ss/wörd"))]);
    for login in ["", "me:hunter2@"] {
        let failure = setup(&ask(&*model(base, &trusting, &of(login, &locked)), hello()).await);
        assert!(
            failure.contains(&format!("the proxy http://{} (https_proxy)", locked.address)),
            "{failure}"
        );
        assert!(!failure.contains("hunter2"), "{failure}");
    }
    // A TLS fault behind the proxy names it, too.
    let failure = setup(
        &ask(&*model(base, &Certificates::default(), &of("me:hunter2@", &open)), hello()).await,
    );
    assert!(
        failure.contains("UnknownIssuer") && failure.contains(&format!("http://{}", open.address)),
        "{failure}"
    );
    assert!(!failure.contains("hunter2"), "{failure}");
    // A proxy that does not run.
    let gone = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let proxies =
        Proxies { https: Some(format!("http://me:hunter2@{gone}")), ..Proxies::default() };
    let events = ask(&*model(base, &trusting, &proxies), hello()).await;
    let [Err(error @ ModelError::Connection { message })] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(error.is_temporary() && message.contains("refused"), "{message}");
    assert!(
        message.contains(&format!("models.invalid, through the proxy http://{gone} (https_proxy)")),
        "{message}"
    );
    assert!(!message.contains("hunter2"), "{message}");
}

#[tokio::test]
async fn m_e2_no_proxy_respects_ports() {
    let place = TlsSetup::new(&["models.invalid"]);
    let proxy = ProxyServer::start(Kind::Http, place.tls.address);
    for (no, goes_through) in [
        ("", true),
        ("models.invalid:443", true),
        ("other.invalid, 10.0.0.0/8", true),
        ("models.invalid:8443", false),
        ("x MODELS.invalid", false),
        (".invalid", false),
        ("*", false),
    ] {
        let before = proxy.asked().len();
        let proxies =
            Proxies { no: Some(no.to_owned()), ..all(format!("http://{}", proxy.address)) };
        let events =
            ask(&*model("https://models.invalid:8443/v1", &place.trusting(), &proxies), hello())
                .await;
        if goes_through {
            answered(&events);
            assert_eq!(proxy.asked()[before..], [asked("models.invalid:8443", None)], "{no}");
        } else {
            let [Err(ModelError::Connection { message })] = &events[..] else {
                panic!("{no}: {events:?}")
            };
            assert!(message.contains("dns error") && !message.contains("proxy"), "{no}: {message}");
            assert_eq!(proxy.asked().len(), before, "{no}");
        }
    }
    // This machine is reached without the proxy.
    let local = TlsSetup::new(&["127.0.0.1"]);
    let address = format!("https://{}/v1", local.tls.address);
    let proxies = all(format!("http://{}", proxy.address));
    let before = proxy.asked().len();
    answered(&ask(&*model(&address, &local.trusting(), &proxies), hello()).await);
    assert_eq!(proxy.asked().len(), before);
}

#[tokio::test]
async fn m_e2_plain_http_is_forwarded_by_a_proxy_also_over_tls() {
    let place = TlsSetup::new(&["127.0.0.1"]);
    let (base, server) = ("http://models.invalid/v1", place.server.address());
    let of = |address: String| Proxies { http: Some(address), ..Proxies::default() };
    // The server acts as the proxy: requests have the whole address, and it answers for any host.
    let plain = of(format!("http://me:hunter2@{server}"));
    let secure = of(format!("https://me:hunter2@{}", place.tls.address));
    for proxies in [&plain, &secure] {
        answered(&ask(&*model(base, &place.trusting(), proxies), hello()).await);
        let request = place.server.requests().pop().unwrap();
        assert_eq!(request.path, "http://models.invalid/v1/chat/completions");
        assert_eq!(request.header("proxy-authorization"), Some("Basic bWU6aHVudGVyMg=="));
    }
    place.server.reply(Reply::status(407, &[], "not hunter2"));
    let failure = setup(&ask(&*model(base, &place.trusting(), &plain), hello()).await);
    assert!(
        failure.contains(&format!("the proxy http://{server} (http_proxy)"))
            && !failure.contains("hunter2"),
        "{failure}"
    );
    place.server.reply(Reply::status(403, &[], "hunter2 may not"));
    let events = ask(&*model(base, &place.trusting(), &plain), hello()).await;
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    // A message that is cut inside the password does not show the beginning of the password.
    for bytes in 490..=500 {
        let message = format!("{}hunter2 may not", "x".repeat(bytes));
        place.server.reply(Reply::status(403, &[], &message));
        let events = ask(&*model(base, &place.trusting(), &plain), hello()).await;
        assert!(!format!("{events:?}").contains("xh"), "{events:?}");
        let fault = serde_json::json!({ "error": { "message": message } });
        place.server.reply(Reply::stream().event(&fault.to_string()).end());
        let events = ask(&*model(base, &place.trusting(), &plain), hello()).await;
        assert!(events.iter().any(Result::is_err), "{events:?}");
        assert!(!format!("{events:?}").contains("xh"), "{events:?}");
    }
}

#[tokio::test]
async fn m_e2_socks_resolves_names_here_or_there() {
    let place = TlsSetup::new(&["models.invalid", "192.0.2.1"]);
    let trusting = place.trusting();
    let (name, address) = ("https://models.invalid/v1", "https://192.0.2.1:8443/v1");
    let proxy = ProxyServer::start(Kind::Socks5, place.tls.address);
    let through = |scheme: &str, login: &str, proxy: &ProxyServer| {
        all(format!("{scheme}://{login}{}", proxy.address))
    };
    answered(&ask(&*model(name, &trusting, &through("socks5h", "", &proxy)), hello()).await);
    answered(&ask(&*model(address, &trusting, &through("socks5", "", &proxy)), hello()).await);
    let both = [asked("models.invalid:443", None), asked("192.0.2.1:8443", None)];
    assert_eq!(proxy.asked(), both);
    // A name that can't be resolved here never reaches the proxy.
    let events = ask(&*model(name, &trusting, &through("socks5", "", &proxy)), hello()).await;
    let [Err(ModelError::Connection { message })] = &events[..] else { panic!("{events:?}") };
    assert!(
        message.contains(&format!("through the proxy socks5://{} (all_proxy)", proxy.address)),
        "{message}"
    );
    assert_eq!(proxy.asked(), both);

    let locked = ProxyServer::locked(Kind::Socks5, place.server.address(), "me:hunter2");
    let plain = "http://models.invalid/v1";
    answered(
        &ask(&*model(plain, &trusting, &through("socks5h", "me:hunter%32@", &locked)), hello())
            .await,
    );
    assert_eq!(locked.asked(), [asked("models.invalid:80", Some("me:hunter2"))]);
    assert_eq!(place.server.requests().pop().unwrap().path, "/v1/chat/completions");
    for login in ["", "me:hunter3@"] {
        let failure = setup(
            &ask(&*model(plain, &trusting, &through("socks5h", login, &locked)), hello()).await,
        );
        assert!(
            failure.contains(&format!("socks5h://{} (all_proxy)", locked.address)),
            "{failure}"
        );
        assert!(!failure.contains("hunter3"), "{failure}");
    }
}
