//! Tests of the connection against a scripted WebSocket server.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::protocol::{CloseTarget, CreateTarget, GetVersion, TargetCrashed};
use super::{CdpError, Client, connect};

type Socket = WebSocket<std::net::TcpStream>;

/// Runs `test` with a client that is connected to a server running `browser`.
fn with<T>(
    browser: impl FnOnce(&mut Socket) + Send + 'static,
    test: impl AsyncFnOnce(Client) -> T,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ws://{}/devtools/browser/1", listener.local_addr().unwrap());
    let browser = thread::spawn(move || {
        browser(&mut tungstenite::accept(listener.accept().unwrap().0).unwrap())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let (client, mut driver) = connect(&address).await.unwrap();
        let driving = tokio::spawn(async move { driver.run().await });
        let done = test(client).await;
        driving.abort();
        done
    });
    drop(runtime);
    browser.join().unwrap();
    done
}

fn receive(socket: &mut Socket) -> Value {
    serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
}

fn send(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

#[test]
fn each_command_gets_its_own_answer_in_whatever_order_they_come() {
    let browser = |socket: &mut Socket| {
        let (create, close) = (receive(socket), receive(socket));
        assert_eq!(
            create["params"],
            json!({"url": "about:blank", "newWindow": true, "background": false})
        );
        assert_eq!(
            (&close["method"], &close["params"]["targetId"]),
            (&json!("Target.closeTarget"), &json!("T"))
        );
        assert!(close.get("sessionId").is_none(), "{close}");
        send(socket, &json!({"id": 999, "result": {}}));
        socket.send(Message::text("no JSON")).unwrap();
        send(
            socket,
            &json!({"id": close["id"], "error": {"code": -32000, "message": "No target"}}),
        );
        send(socket, &json!({"id": create["id"], "result": {"targetId": "N", "more": 1}}));
    };
    with(browser, async |client| {
        let blank = CreateTarget { url: "about:blank", new_window: true, background: false };
        let (created, closed) =
            tokio::join!(client.execute(blank), client.execute(CloseTarget { target_id: "T" }));
        assert_eq!(created.unwrap().target_id, "N");
        let Err(CdpError::Refused { code: -32000, message }) = closed else { panic!("{closed:?}") };
        assert_eq!(message, "No target");
    });
}

#[test]
fn an_answer_without_a_result_is_invalid() {
    let browser = |socket: &mut Socket| {
        let version = receive(socket);
        send(socket, &json!({"id": version["id"]}));
    };
    with(browser, async |client| {
        let error = client.execute(GetVersion {}).await.err().unwrap();
        assert_eq!(error.to_string(), "invalid answer: missing field `result`");
    });
}

#[test]
fn commands_and_listeners_end_with_their_session() {
    let browser = |socket: &mut Socket| {
        let attach = receive(socket);
        assert_eq!(attach["params"], json!({"targetId": "T", "flatten": true}));
        send(socket, &json!({"id": attach["id"], "result": {"sessionId": "S"}}));
        let asked = receive(socket);
        assert_eq!(asked["sessionId"], "S");
        let crashed = |target: &str| json!({"method": "Target.targetCrashed", "params": {"targetId": target}});
        send(socket, &crashed("of the browser"));
        let mut of_page = crashed("of the page");
        of_page["sessionId"] = json!("S");
        send(socket, &of_page);
        send(socket, &json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "S"}}));
        let version = receive(socket);
        send(socket, &json!({"id": version["id"], "result": {}}));
    };
    with(browser, async |client| {
        let page = client.attach("T").await.unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&received);
        let _listening = page.listen(move |event| {
            listener
                .lock()
                .unwrap()
                .extend(event.read::<TargetCrashed>().map(|crashed| crashed.target_id));
        });
        assert!(matches!(page.execute(GetVersion {}).await, Err(CdpError::Ended)));
        assert_eq!(*received.lock().unwrap(), ["of the page"]);
        assert_eq!(Arc::strong_count(&received), 1, "the listener is dropped");
        client.execute(GetVersion {}).await.unwrap();
    });
}

#[test]
fn commands_fail_after_the_connection_has_ended() {
    with(
        |socket| drop(receive(socket)),
        async |client| {
            let token = Arc::new(());
            let kept = Arc::clone(&token);
            let _listening = client.listen(move |_| drop(Arc::clone(&kept)));
            assert!(matches!(client.execute(GetVersion {}).await, Err(CdpError::Ended)));
            assert!(matches!(client.execute(GetVersion {}).await, Err(CdpError::Ended)));
            assert_eq!(Arc::strong_count(&token), 1, "the listener is dropped");
        },
    );
}

#[test]
fn an_abandoned_command_is_removed() {
    let browser = |socket: &mut Socket| {
        let forgotten = receive(socket);
        let asked = receive(socket);
        send(socket, &json!({"id": forgotten["id"], "result": {}}));
        send(socket, &json!({"id": asked["id"], "result": {}}));
    };
    with(browser, async |client| {
        {
            let mut command = std::pin::pin!(client.execute(GetVersion {}));
            assert!(futures_util::poll!(&mut command).is_pending());
            assert!(format!("{client:?}").contains("pending: 1"), "{client:?}");
        }
        assert!(format!("{client:?}").contains("pending: 0"), "{client:?}");
        client.execute(GetVersion {}).await.unwrap();
    });
}
