module github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/components/node

go 1.26.0
