module github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster

go 1.26.6

require (
	github.com/distribution/reference v0.6.0
	github.com/google/go-containerregistry v0.22.1
)

require (
	github.com/containerd/containerd/v2 v2.4.2 // indirect
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/klauspost/compress v1.20.0 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
