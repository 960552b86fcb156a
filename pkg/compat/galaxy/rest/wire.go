package rest

import "net/http"

// FloatingIP is an address in galaxy's form.
type FloatingIP struct {
	IP        string `json:"ip"`
	Namespace string `json:"namespace,omitempty"`
	// AppName is the workload, PodName the pod that has or had the address last. PoolName is the shared pool that keeps
	// it.
	AppName  string `json:"appName,omitempty"`
	PodName  string `json:"podName,omitempty"`
	PoolName string `json:"poolName,omitempty"`
	// Policy is 0 if the address is released with its pod, 1 if it is released when its app no longer needs it or after
	// a time, 2 if it must be released by hand.
	Policy int `json:"policy"`
	// IsDeployment is for clients that know only two kinds. AppType is the kind in lower case.
	IsDeployment bool   `json:"isDeployment,omitempty"`
	AppType      string `json:"appType,omitempty"`
	// UpdateTime is the time of the last allocation or release, in RFC 3339 with fractions of a second.
	UpdateTime string `json:"updateTime,omitempty"`
	// Status is the phase of the pod, or Deleted; empty for an address that no pod ever had.
	Status string `json:"status,omitempty"`
	// Releasable reports whether no pod has the address.
	Releasable bool `json:"releasable"`
}

// Page describes one page of a list.
type Page struct {
	Last             bool `json:"last"`
	TotalElements    int  `json:"totalElements"`
	TotalPages       int  `json:"totalPages"`
	First            bool `json:"first"`
	NumberOfElements int  `json:"numberOfElements"`
	Size             int  `json:"size"`
	Number           int  `json:"number"`
}

// ListIPResponse is the answer to GET /v1/ip.
type ListIPResponse struct {
	Page
	Content []FloatingIP `json:"content"`
}

// Response is the common beginning of all other answers, and the whole of a refusal.
type Response struct {
	// Code is the HTTP status.
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Status returns the HTTP status to answer with.
func (r Response) Status() int { return r.Code }

// Status returns the HTTP status to answer with.
func (ListIPResponse) Status() int { return http.StatusOK }

// ReleaseIPRequest is the body of POST /v1/ip.
type ReleaseIPRequest struct {
	IPs []OwnedIP `json:"ips"`
}

// OwnedIP is an address with its owner, in the fields of a FloatingIP. Its other fields are ignored.
type OwnedIP struct {
	IP           string `json:"ip"`
	Namespace    string `json:"namespace,omitempty"`
	AppName      string `json:"appName,omitempty"`
	PodName      string `json:"podName,omitempty"`
	PoolName     string `json:"poolName,omitempty"`
	IsDeployment bool   `json:"isDeployment,omitempty"`
	AppType      string `json:"appType,omitempty"`
}

// ReleaseIPResponse is the answer to POST /v1/ip.
type ReleaseIPResponse struct {
	Response
	// Unreleased are the addresses that were already released, have another owner, or are in no pool.
	Unreleased []string `json:"unreleased,omitempty"`
}

// SharedPool describes a shared pool.
type SharedPool struct {
	Name string `json:"name"`
	// Size is the limit for the pool's addresses.
	Size int `json:"size"`
	// PreAllocateIP makes the pool take its addresses before a pod asks.
	PreAllocateIP bool `json:"preAllocateIP"`
}

// SetPoolRequest is the body of POST /v1/pool.
type SetPoolRequest struct {
	Name          string `json:"name"`
	Size          *int   `json:"size"`
	PreAllocateIP bool   `json:"preAllocateIP"`
}

// GetPoolResponse is the answer to GET /v1/pool/{name}.
type GetPoolResponse struct {
	Response
	Pool SharedPool `json:"pool"`
}

// UpdatePoolResponse is the answer to POST /v1/pool.
type UpdatePoolResponse struct {
	Response
	// RealPoolSize is the number of addresses that the pool has.
	RealPoolSize int `json:"realPoolSize"`
}
