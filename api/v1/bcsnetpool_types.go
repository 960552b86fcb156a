package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BCSNetPool is a range of addresses in one subnet and who may use them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bnp,categories=bcsnet
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.network`
// +kubebuilder:selectablefield:JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name=Net,type=string,JSONPath=`.spec.net`
// +kubebuilder:printcolumn:name=Mask,type=integer,JSONPath=`.spec.mask`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name=Active,type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name=Reserved,type=integer,JSONPath=`.status.reserved`
// +kubebuilder:printcolumn:name=Free,type=integer,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Parent,type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name=Gateway,type=string,JSONPath=`.spec.gateway`,priority=1
// +kubebuilder:printcolumn:name=Network,type=string,JSONPath=`.spec.network`,priority=1
// +kubebuilder:printcolumn:name=VLAN,type=integer,JSONPath=`.spec.vlan`,priority=1
// +kubebuilder:printcolumn:name=Priority,type=integer,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name=Order,type=string,JSONPath=`.spec.allocationOrder`,priority=1
// +kubebuilder:printcolumn:name=Cordoned,type=boolean,JSONPath=`.spec.cordoned`,priority=1
// +kubebuilder:printcolumn:name=Cooling,type=integer,JSONPath=`.status.cooling`,priority=1
// +kubebuilder:printcolumn:name=Hosts,type=integer,JSONPath=`.status.hosts`,priority=1
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.status`,priority=1
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`self.spec.net == oldSelf.spec.net || oldSelf.?status.?active.orValue(0) == 0 && oldSelf.?status.?reserved.orValue(0) == 0`,messageExpression=`'cannot change from %s to %s while addresses of the pool are held (%d active, %d reserved): release them first, or make another pool'.format([oldSelf.spec.net, self.spec.net, oldSelf.?status.?active.orValue(0), oldSelf.?status.?reserved.orValue(0)])`,fieldPath=`.spec.net`,reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule=`self.spec.mask == oldSelf.spec.mask || oldSelf.?status.?active.orValue(0) == 0 && oldSelf.?status.?reserved.orValue(0) == 0`,messageExpression=`'cannot change from %d to %d while addresses of the pool are held (%d active, %d reserved): release them first, or make another pool'.format([oldSelf.spec.mask, self.spec.mask, oldSelf.?status.?active.orValue(0), oldSelf.?status.?reserved.orValue(0)])`,fieldPath=`.spec.mask`,reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.parent) || self.spec.parent != self.metadata.name`,message=`a pool cannot be its own parent`,fieldPath=`.spec.parent`
// +kubebuilder:validation:XValidation:rule=`!(has(oldSelf.spec.parent) && has(oldSelf.spec.materialize) && oldSelf.spec.materialize == 'OnDemand' && has(oldSelf.spec.availableIPs) && oldSelf.spec.availableIPs.size() == 1 && isCIDR(oldSelf.spec.availableIPs[0]) && (ip(oldSelf.spec.net).family() == 4 ? self.metadata.name == oldSelf.spec.parent + '-' + oldSelf.spec.availableIPs[0].replace('.', '-').replace('/', '-') : self.metadata.name.startsWith(oldSelf.spec.parent + '-') && self.metadata.name.endsWith('-' + oldSelf.spec.availableIPs[0].split('/')[1]) && self.metadata.name.size() == oldSelf.spec.parent.size() + 41 + oldSelf.spec.availableIPs[0].split('/')[1].size())) || !has(oldSelf.spec.namespaces) || oldSelf.spec.namespaces.size() != 1 || has(self.spec.namespaces) && self.spec.namespaces == oldSelf.spec.namespaces`,messageExpression=`'a block belongs to namespace %s, for which it was made, for as long as it exists: delete it, and give the other namespace a block: bcsnetctl pool bind %s --namespace NAMESPACE'.format([oldSelf.spec.namespaces[0], oldSelf.spec.parent])`,fieldPath=`.spec.namespaces`,reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule=`!(has(oldSelf.spec.parent) && has(oldSelf.spec.materialize) && oldSelf.spec.materialize == 'OnDemand' && has(oldSelf.spec.availableIPs) && oldSelf.spec.availableIPs.size() == 1 && isCIDR(oldSelf.spec.availableIPs[0]) && (ip(oldSelf.spec.net).family() == 4 ? self.metadata.name == oldSelf.spec.parent + '-' + oldSelf.spec.availableIPs[0].replace('.', '-').replace('/', '-') : self.metadata.name.startsWith(oldSelf.spec.parent + '-') && self.metadata.name.endsWith('-' + oldSelf.spec.availableIPs[0].split('/')[1]) && self.metadata.name.size() == oldSelf.spec.parent.size() + 41 + oldSelf.spec.availableIPs[0].split('/')[1].size())) || has(self.spec.availableIPs) && has(oldSelf.spec.availableIPs) && self.spec.availableIPs == oldSelf.spec.availableIPs`,messageExpression=`'a block has the addresses that it is called by, %s, for as long as it exists'.format([oldSelf.spec.availableIPs[0]])`,fieldPath=`.spec.availableIPs`,reason=FieldValueForbidden
type BCSNetPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BCSNetPoolSpec   `json:"spec"`
	Status BCSNetPoolStatus `json:"status,omitempty"`
}

// The rules of the API server and what they leave out. A rule may cost 10,000,000 units by estimate
// (each entry of a list counts in full) and 1,000,000 when it runs, an object 10,000,000; and a loop takes
// time by the square of the list: 20 ms for 4,096 entries, 400 ms for 16,384, at every write of the
// object and of its status. So five things are left to the controller, which says Ready=False, InvalidSpec:
//
//   - that the entries of availableIPs lie in the subnet, in a list of more than 4,096 entries;
//   - that an IPv6 range is not reversed (both ends are known to lie in one /64);
//   - that a range has no IPv4-mapped addresses between its ends;
//   - that a subnet larger than a /8 of IPv4, or a /10 of IPv6, has no loopback, link-local, multicast or reserved
//     addresses in availableIPs;
//   - that all of availableIPs together are no more than a /64.
//
// How the rules are written, so that Kubernetes 1.31 takes them:
//
//   - [x].all(v, …) gives x the name v;
//   - the prefix length becomes text by a table of digits, as string(int) counts as unbounded;
//   - addresses are compared by "a in [b]", as == on them counts as unbounded there;
//   - containsCIDR is wrong for most CIDRs in 1.31, so both halves of it are spelled out.

// BCSNetPoolSpec has the addresses of a pool, who may draw from it, and the settings that pods get.
//
// +kubebuilder:validation:XValidation:rule=`self.mask <= 32 || self.mask > 128 || !isIP(self.net) || ip(self.net).family() == 6`,messageExpression=`'mask %d is too long for the IPv4 subnet %s: use 1 to 32'.format([self.mask, self.net])`,fieldPath=`.mask`
// +kubebuilder:validation:XValidation:rule=`self.mask < 1 || self.mask > 128 || [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].all(p, !isCIDR(p) || [cidr(p)].all(c, c.ip() in [c.masked().ip()]))`,messageExpression=`'net %s has bits set beyond mask %d: the address of that subnet is %s'.format([self.net, self.mask, string(cidr(self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]).masked().ip())])`,fieldPath=`.net`
// +kubebuilder:validation:XValidation:rule=`!has(self.gateway) || !isIP(self.net) || !isIP(self.gateway) || ip(self.net).family() == ip(self.gateway).family()`,messageExpression=`'gateway %s is not of the family of net %s: use an address of the subnet'.format([self.gateway, self.net])`,fieldPath=`.gateway`
// +kubebuilder:validation:XValidation:rule=`!has(self.gateway) || self.mask < 1 || self.mask > 128 || [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].all(p, !isCIDR(p) || [cidr(p)].all(c, c.prefixLength() == (c.ip().family() == 4 ? 32 : 128) || !isIP(self.gateway) || ip(self.gateway).family() != c.ip().family() || c.containsIP(self.gateway) || ip(self.gateway).family() == 6 && ip(self.gateway).isLinkLocalUnicast()))`,messageExpression=`'gateway %s does not lie in the subnet %s/%d: use an address of the subnet%s'.format([self.gateway, self.net, self.mask, isIP(self.gateway) && ip(self.gateway).family() == 6 ? ', or a link-local one such as fe80::1' : ""])`,fieldPath=`.gateway`
// +kubebuilder:validation:XValidation:rule=`!has(self.gateway) || self.mask < 1 || self.mask > 30 || ![self.net, self.gateway].all(a, isIP(a) && ip(a).family() == 4) || [[self.net, self.gateway].map(a, a.split('.', 4)).map(o, ((int(o[0]) * 256 + int(o[1])) * 256 + int(o[2])) * 256 + int(o[3]))].all(n, n[1] != n[0] && n[1] != n[0] + [1, 2, 4, 8, 16, 32, 64, 128][(32 - self.mask) % 8] * [1, 256, 65536, 16777216][(32 - self.mask) / 8] - 1)`,messageExpression=`'gateway %s is the %s address of the subnet %s/%d: use an address between the two'.format([self.gateway, self.gateway == self.net ? 'network' : 'broadcast', self.net, self.mask])`,fieldPath=`.gateway`
// +kubebuilder:validation:XValidation:rule=`!has(self.availableIPs) || self.availableIPs.size() > 4096 || self.mask < 1 || self.mask > 128 || [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].all(p, !isCIDR(p) || [cidr(p)].all(c, self.availableIPs.all(x, isIP(x) ? c.containsIP(x) : isCIDR(x) ? c.containsIP(cidr(x).ip()) && cidr(x).prefixLength() >= c.prefixLength() : x.replace('~', '-').split('-', 2).all(a, !isIP(a) || c.containsIP(a)))))`,messageExpression=`'%s does not lie in the subnet %s/%d: list only addresses of the subnet'.format([self.availableIPs.filter(x, [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].exists(p, [cidr(p)].exists(c, !(isIP(x) ? c.containsIP(x) : isCIDR(x) ? c.containsIP(cidr(x).ip()) && cidr(x).prefixLength() >= c.prefixLength() : x.replace('~', '-').split('-', 2).all(a, !isIP(a) || c.containsIP(a))))))[0], self.net, self.mask])`,message=`every entry must lie in the subnet`,fieldPath=`.availableIPs`
// +kubebuilder:validation:XValidation:rule=`!has(self.excludeIPs) || self.mask < 1 || self.mask > 128 || [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].all(p, !isCIDR(p) || [cidr(p)].all(c, self.excludeIPs.all(x, isIP(x) ? c.containsIP(x) : isCIDR(x) ? c.containsIP(cidr(x).ip()) && cidr(x).prefixLength() >= c.prefixLength() : x.replace('~', '-').split('-', 2).all(a, !isIP(a) || c.containsIP(a)))))`,messageExpression=`'%s does not lie in the subnet %s/%d: list only addresses of the subnet'.format([self.excludeIPs.filter(x, [self.net + '/' + ["",'1','2','3','4','5','6','7','8','9','10','11','12'][self.mask / 10] + ['0','1','2','3','4','5','6','7','8','9'][self.mask % 10]].exists(p, [cidr(p)].exists(c, !(isIP(x) ? c.containsIP(x) : isCIDR(x) ? c.containsIP(cidr(x).ip()) && cidr(x).prefixLength() >= c.prefixLength() : x.replace('~', '-').split('-', 2).all(a, !isIP(a) || c.containsIP(a))))))[0], self.net, self.mask])`,message=`every entry must lie in the subnet`,fieldPath=`.excludeIPs`
// +kubebuilder:validation:XValidation:rule=`!has(self.routes) || !isIP(self.net) || self.routes.all(r, (has(r.gw) && r.gw != "") || !isCIDR(r.dst) || cidr(r.dst).ip().family() == ip(self.net).family())`,messageExpression=`'the route to %s has no gw, and the gateway of the pool is not of its family: set gw'.format([self.routes.filter(r, (!has(r.gw) || r.gw == "") && isCIDR(r.dst) && cidr(r.dst).ip().family() != ip(self.net).family())[0].dst])`,fieldPath=`.routes`
// +kubebuilder:validation:XValidation:rule=`!has(self.routes) || has(self.gateway) && self.gateway != "" || has(self.parent) && self.parent != "" || self.routes.all(r, has(r.gw) && r.gw != "")`,messageExpression=`'the route to %s has no gw, and the pool has no gateway: set one of them'.format([self.routes.filter(r, !has(r.gw) || r.gw == "")[0].dst])`,fieldPath=`.routes`
// +kubebuilder:validation:XValidation:rule=`!has(self.mtu) || self.mtu < 68 || self.mtu >= 1280 || !isIP(self.net) || ip(self.net).family() == 4`,messageExpression=`'mtu %d is too small for IPv6: use at least 1280, or 0 to leave it to the plugin'.format([self.mtu])`,fieldPath=`.mtu`
// +kubebuilder:validation:XValidation:rule=`has(self.parent) ? has(oldSelf.parent) && self.parent == oldSelf.parent : !has(oldSelf.parent)`,message=`cannot change: delete the pool, and make it again`,fieldPath=`.parent`,reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule=`!has(self.blockSize) || !isIP(self.net) || self.blockSize > self.mask && self.blockSize <= (ip(self.net).family() == 4 ? 32 : 128)`,messageExpression=`'blockSize %d is not between %d and %d: a block is a part of the subnet %s/%d'.format([self.blockSize, self.mask + 1, ip(self.net).family() == 4 ? 32 : 128, self.net, self.mask])`,fieldPath=`.blockSize`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.blockSize) || has(self.blockSize) && self.blockSize == oldSelf.blockSize`,message=`cannot change once it is set, as namespaces may own blocks: make another pool`,fieldPath=`.blockSize`,reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule=`!has(self.autoAssign) || !self.autoAssign || has(self.blockSize)`,message=`needs blockSize, the prefix length of the blocks that namespaces get`,fieldPath=`.autoAssign`
// +kubebuilder:validation:XValidation:rule=`!has(self.blockSize) || !has(self.parent) || self.parent == ""`,message=`a pool that has a parent cannot be split into blocks`,fieldPath=`.blockSize`
// +kubebuilder:validation:XValidation:rule=`!has(self.reclaimAfter) || has(self.blockSize)`,message=`needs blockSize, the prefix length of the blocks that namespaces get`,fieldPath=`.reclaimAfter`
type BCSNetPoolSpec struct {
	// net is the subnet's address, IPv4 or IPv6, without the prefix length. It cannot change while
	// addresses of the pool are active or reserved.
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`must be the IPv4 or IPv6 address of the subnet alone (the prefix length goes into mask); zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	// +kubebuilder:validation:XValidation:rule=`!isIP(self) || ip(self).isGlobalUnicast() && !self.matches('^(0|24[0-9]|25[0-5])[.]')`,message=`must be a subnet whose addresses can be given to pods: 0.0.0.0/8, 240.0.0.0/4, loopback, link-local and multicast addresses are not taken`
	Net string `json:"net"`

	// mask is the prefix length of the subnet, 1 to 32 for IPv4 and 1 to 128 for IPv6. It cannot
	// change while addresses of the pool are active or reserved.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Mask int32 `json:"mask"`

	// gateway of the subnet. It lies inside the subnet, unless that is a /32 or /128, or is a link-local IPv6 address
	// such as fe80::1. It is never allocated and may change at any time. A network without a router has none: pods get
	// no gateway, and no default route.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`self == "" || isIP(self)`,message=`must be an IPv4 or IPv6 address; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Gateway string `json:"gateway,omitempty"`

	// hosts are the IPs of the hosts that may draw from the pool. Without hosts, hostSubnets and hostSelector,
	// no host may.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self)`,message=`must be the IPv4 or IPv6 address of a host; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Hosts []string `json:"hosts,omitempty"`

	// hostSubnets are subnets of hosts, as CIDRs: every host whose IP lies in one of them may draw from the
	// pool, beside those that hosts lists, also one that joins later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule=`isCIDR(self) && cidr(self).ip() in [cidr(self).masked().ip()]`,messageExpression=`!isCIDR(self) ? 'must be a CIDR, such as 10.0.0.0/16' : 'has bits set beyond the prefix length: write %s'.format([string(cidr(self).masked())])`
	HostSubnets []string `json:"hostSubnets,omitempty"`

	// hostSelector chooses nodes by their labels, such as those of a rack or zone: a host whose IP is the InternalIP of
	// such a node may draw from the pool, beside those of hosts and hostSubnets. A node that loses the label may no
	// longer draw; the addresses that its pods have stay with them.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0`,message=`must have matchLabels or matchExpressions: an empty selector would choose every node`
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))`,message=`each of matchExpressions must have the operator In or NotIn, with values, or Exists or DoesNotExist, without`
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`

	// availableIPs are the addresses to allocate: single addresses, ranges "a-b" or "a~b", and CIDRs, mixed as you
	// like. Network, broadcast and gateway addresses are left out by themselves. The list is yours: nothing bcsnet does
	// rewrites it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MaxLength=79
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self) || (isCIDR(self) ? [cidr(self)].all(c, c.ip() in [c.masked().ip()] && (c.ip().family() == 4 || c.prefixLength() >= 64)) : self.replace('~', '-').split('-', 2).map(a, isIP(a) ? ip(a).family() : 0).sum() in [8, 12])`,messageExpression=`!isCIDR(self) ? 'must be an IPv4 or IPv6 address, a range a-b or a~b of two addresses of one family, or a CIDR, without blanks' : cidr(self).ip() in [cidr(self).masked().ip()] ? 'is larger than a /64, the largest that a pool can hold' : 'has bits set beyond the prefix length: write %s'.format([string(cidr(self).masked())])`
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self) || [self.replace('~', '-')].all(s, [s.split('-', 2).map(a, isIP(a) ? ip(a).family() : 0).sum()].all(f, f == 8 ? [s.replace('-', '.').split('.', 8)].all(o, ((int(o[0]) * 256 + int(o[1])) * 256 + int(o[2])) * 256 + int(o[3]) <= ((int(o[4]) * 256 + int(o[5])) * 256 + int(o[6])) * 256 + int(o[7])) : f != 12 || cidr(s.split('-', 2)[0] + '/64').containsIP(s.split('-', 2)[1])))`,messageExpression=`self.contains(':') ? 'reaches beyond one /64, the largest range that a pool can hold' : [self.replace('~', '-').split('-', 2)].map(r, 'is reversed: write %s-%s'.format([r[1], r[0]]))[0]`
	AvailableIPs []string `json:"availableIPs,omitempty"`

	// excludeIPs are taken out of availableIPs; the same notation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=79
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self) || (isCIDR(self) ? [cidr(self)].all(c, c.ip() in [c.masked().ip()] && (c.ip().family() == 4 || c.prefixLength() >= 64)) : self.replace('~', '-').split('-', 2).map(a, isIP(a) ? ip(a).family() : 0).sum() in [8, 12])`,messageExpression=`!isCIDR(self) ? 'must be an IPv4 or IPv6 address, a range a-b or a~b of two addresses of one family, or a CIDR, without blanks' : cidr(self).ip() in [cidr(self).masked().ip()] ? 'is larger than a /64, the largest that a pool can hold' : 'has bits set beyond the prefix length: write %s'.format([string(cidr(self).masked())])`
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self) || [self.replace('~', '-')].all(s, [s.split('-', 2).map(a, isIP(a) ? ip(a).family() : 0).sum()].all(f, f == 8 ? [s.replace('-', '.').split('.', 8)].all(o, ((int(o[0]) * 256 + int(o[1])) * 256 + int(o[2])) * 256 + int(o[3]) <= ((int(o[4]) * 256 + int(o[5])) * 256 + int(o[6])) * 256 + int(o[7])) : f != 12 || cidr(s.split('-', 2)[0] + '/64').containsIP(s.split('-', 2)[1])))`,messageExpression=`self.contains(':') ? 'reaches beyond one /64, the largest range that a pool can hold' : [self.replace('~', '-').split('-', 2)].map(r, 'is reversed: write %s-%s'.format([r[1], r[0]]))[0]`
	ExcludeIPs []string `json:"excludeIPs,omitempty"`

	// namespaces binds the pool to these namespaces. It then serves only them and the namespaces that namespaceSelector
	// matches, and they draw only from their bound pools. A pool that is bound to no namespace is in the default chain:
	// it serves every namespace without its own pools.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`must be the name of a namespace: lower-case letters, digits and -, with a letter or digit at both ends`
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector binds the pool to the namespaces whose labels it matches, as namespaces does by name. It cannot
	// be empty, as that would match all. A namespace whose labels change keeps the addresses that it has.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0`,message=`must not be empty: it would match every namespace; leave it out, or name a label in matchLabels or matchExpressions`
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))`,message=`takes the operators In and NotIn with values, and Exists and DoesNotExist without`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// default puts the pool into the default chain: while it is bound to no namespace, it serves every namespace that
	// has no pool of its own. If false, it serves only requests that name it, or its network.
	// +optional
	Default *bool `json:"default,omitempty"`

	// network names the network that this pool is part of. The IPv4 and the IPv6 pools of one
	// network belong together: a request takes one address of each family.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`must be lower-case letters, digits, - and ., with a letter or digit at both ends and around each dot`
	Network string `json:"network,omitempty"`

	// parent names the pool that this one is carved from: its addresses are some of the parent's, not all, and the
	// parent no longer allocates them. net and mask are the parent's. A group takes hosts, namespaces and network of
	// the parent where it has none of its own. It cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`must be the name of a pool: lower-case letters, digits, - and ., with a letter or digit at both ends and around each dot`
	Parent string `json:"parent,omitempty"`

	// blockSize splits the pool into blocks of this prefix length, at most 65,536 of them. A block is a pool of its
	// own, <pool>-<a-b-c-d>-<length>, that exists while a namespace owns it; the pool allocates nothing itself. It is
	// longer than mask, and does not change once it is set.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=128
	BlockSize int32 `json:"blockSize,omitempty"`

	// autoAssign gives a namespace a block by itself when it asks for its first address, and another one when its
	// blocks are full. It needs blockSize.
	// +optional
	AutoAssign bool `json:"autoAssign,omitempty"`

	// reclaimAfter takes a block back from a namespace that lives when no address of it was in use, reserved or cooling
	// for so long: whole hours, minutes and seconds such as 12h or 1h30m, at most 720h. The last block of a namespace
	// stays. Without it, blocks stay while their namespace does; those of one that is gone stay for an hour.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?)$') && self != "" && duration(self) > duration('0s') && duration(self) <= duration('720h')`,message=`must be whole hours, minutes and seconds such as 90s, 5m or 1h30m, more than 0s and at most 720h`
	ReclaimAfter *metav1.Duration `json:"reclaimAfter,omitempty"`

	// priority orders the pools that fit a request; the higher is tried first, equal ones by name. That of a block,
	// above 0, orders the blocks of its namespace: such blocks are drawn from before the others.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// maxPerHost is the number of addresses of the pool that one host may have in use at a time, as if a network card
	// or a cloud bounds them; 0 means no limit. A host that has more when it is made smaller keeps them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	MaxPerHost int32 `json:"maxPerHost,omitempty"`

	// maxPerNamespace is the number of addresses of the pool that one namespace may have at a time, if quotas do not
	// name it: those that its pods use, and those that its claims keep. 0 means no limit. A namespace that has more
	// when it is made smaller keeps them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MaxPerNamespace int32 `json:"maxPerNamespace,omitempty"`

	// quotas say of single namespaces how many addresses of the pool they may have, in place of maxPerNamespace.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=256
	Quotas []NamespaceQuota `json:"quotas,omitempty"`

	// vlan is the VLAN ID that the CNI plugin tags with; 0 means untagged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`

	// mtu in bytes that the CNI plugin sets; 0 leaves it to the plugin.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule=`self == 0 || self >= 68`,message=`must be 68 to 65535, at least 1280 for IPv6, or 0 to leave it to the plugin`
	MTU int32 `json:"mtu,omitempty"`

	// routes that the CNI plugin adds in the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Routes []Route `json:"routes,omitempty"`

	// dns is the resolver configuration that the CNI plugin reports.
	// +optional
	DNS *DNS `json:"dns,omitempty"`

	// materialize says when the BCSNetIP objects of the pool are created: Always one object per
	// address when the pool is made (up to 65,536 in ranges and CIDRs), OnDemand when an address is first used. Auto
	// (the default) creates those of addresses written singly, and those of ranges and CIDRs while they are at most
	// 4,096 addresses together.
	// +optional
	// +kubebuilder:validation:Enum=Always;OnDemand;Auto
	// +kubebuilder:default=Auto
	Materialize Materialize `json:"materialize,omitempty"`

	// cooldown is the time for which an address that was given up rests before the pool allocates it again, whoever
	// gave it up: whole hours, minutes and seconds such as 90s, 5m or 1h30m, at most 720h. Without it, addresses do not
	// rest. A change also counts for the addresses that rest already.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?)$') && self != "" && duration(self) <= duration('720h')`,message=`must be whole hours, minutes and seconds such as 90s, 5m or 1h30m, and at most 720h`
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`

	// allocationOrder says which free address a request gets: Spread, the default, the first one at or after a place
	// that follows from the pod, so that replicas seldom want the same; Lowest, the lowest one that has rested. A pool
	// with a parent that does not say has its parent's.
	// +optional
	// +kubebuilder:validation:Enum=Spread;Lowest
	AllocationOrder AllocationOrder `json:"allocationOrder,omitempty"`

	// cordoned stops new allocations from the pool; addresses in use stay as they are.
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
}

// AllocationOrder is which free address of a pool a request gets.
type AllocationOrder string

// Values of AllocationOrder.
const (
	// AllocationSpread: the first free address at or after a place that follows from the pod.
	AllocationSpread AllocationOrder = "Spread"
	// AllocationLowest: the lowest free address.
	AllocationLowest AllocationOrder = "Lowest"
)

// NamespaceQuota bounds the addresses of a pool that one namespace may have.
type NamespaceQuota struct {
	// namespace is the name of the namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`must be the name of a namespace: lower-case letters, digits and -, with a letter or digit at both ends`
	Namespace string `json:"namespace"`
	// max is the number of addresses of the pool that the namespace may have at a time; 0 is none at all.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Max int32 `json:"max"`
}

// Materialize says when BCSNetIP objects are created.
type Materialize string

// Values of Materialize.
const (
	MaterializeAuto     Materialize = "Auto"
	MaterializeAlways   Materialize = "Always"
	MaterializeOnDemand Materialize = "OnDemand"
)

// MaxCooldown is the longest cooldown of a pool.
const MaxCooldown = 720 * time.Hour

// MaterializeAutoLimit is the largest number of addresses in ranges and CIDRs for which Auto
// creates one object each.
const MaterializeAutoLimit = 4096

// MaterializeAlwaysLimit is the largest number of addresses in ranges and CIDRs for which Always
// creates one object each; above it the pool behaves like OnDemand and its Ready condition says so.
const MaterializeAlwaysLimit = 65536

// Route is one route for the pod.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.gw) || !isIP(self.gw) || !isCIDR(self.dst) || ip(self.gw).family() == cidr(self.dst).ip().family()`,messageExpression=`'gw %s is not of the family of dst %s'.format([self.gw, self.dst])`,fieldPath=`.gw`
type Route struct {
	// dst is the destination network as a CIDR.
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip() in [cidr(self).masked().ip()]`,messageExpression=`!isCIDR(self) ? 'must be a CIDR, such as 10.8.0.0/16 or 0.0.0.0/0' : 'has bits set beyond the prefix length: write %s'.format([string(cidr(self).masked())])`
	Dst string `json:"dst"`
	// gw is the next hop; without it, the pool's gateway. In a pool without a gateway it is required.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`self == "" || isIP(self)`,message=`must be an IPv4 or IPv6 address; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	GW string `json:"gw,omitempty"`
}

// DNS is the resolver configuration in the form of the CNI specification.
type DNS struct {
	// nameservers in order of preference.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self)`,message=`must be the IPv4 or IPv6 address of a nameserver; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Nameservers []string `json:"nameservers,omitempty"`
	// domain used for short host names.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`
	// search domains in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Search []string `json:"search,omitempty"`
	// options of the resolver.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Options []string `json:"options,omitempty"`
}
