package main

// registry is where a release puts its images.
const registry = "ghcr.io/bcsnet"

// image says which programs an image has and how it runs.
type image struct {
	name        string
	title       string
	description string
	programs    []program
	// entrypoint and command are the arguments of a container that is given none.
	entrypoint, command []string
	// user is UID:GID; empty for 0:0.
	user  string
	ports []string
}

// program is a package of this module and its place in the image.
type program struct {
	pkg string
	to  string
}

// nonRoot is the user of images whose programs need nothing of the machine, as distroless images name it.
const nonRoot = "65532:65532"

// images returns all that is shipped. All are built from scratch: a program is static and brings what it needs.
func images() []image {
	return []image{
		{
			name: "bcsnet-controller", title: "bcsnet-controller",
			description: "Keeps address pools and answers CNI plugins",
			programs:    []program{{"./cmd/controller", "/bcsnet-controller"}},
			entrypoint:  []string{"/bcsnet-controller"}, user: nonRoot,
			ports: []string{"8090/tcp", "8091/tcp", "8092/tcp"},
		},
		{
			name: "bcsnetctl", title: "bcsnetctl",
			description: "Manages address pools, hosts and leases",
			programs:    []program{{"./cmd/bcsnetctl", "/bcsnetctl"}},
			entrypoint:  []string{"/bcsnetctl"}, user: nonRoot,
		},
		{
			// It writes into directories of the node that belong to root. bcsnetctl check nodes runs its pods from it.
			name: "bcsnet-node", title: "bcsnet-node",
			description: "Installs the CNI plugins of bcsnet on nodes",
			programs: []program{
				{"./cmd/node", "/bcsnet-node"},
				{"./cmd/podcheck", "/bcsnet-podcheck"},
				{"./plugins/cni/bcsnet-ipam", "/programs/bcsnet-ipam"},
				{"./plugins/cni/bcsnet-announce", "/programs/bcsnet-announce"},
			},
			entrypoint: []string{"/bcsnet-node"}, command: []string{"install"}, user: "0:0",
		},
	}
}
