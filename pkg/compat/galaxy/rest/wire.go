package rest

import "net/http"

// FloatingIP is an address as galaxy shows it.
type FloatingIP struct {
	IP        string `json:"ip"`
	Namespace string `json:"namespace,omitempty"`
	// AppName is the workload, PodName the pod that has the address or had it last. PoolName is the shared pool that
	// keeps it.
	AppName  string `json:"appName,omitempty"`
	PodName  string `json:"podName,omitempty"`
	PoolName string `json:"poolName,omitempty"`
	// Policy is 0 when the address goes with its pod, 1 when it goes with what its app needs or after a while, 2 when
	// somebody has to give it up.
	Policy int `json:"policy"`
	// IsDeployment is AppType for those who know two kinds alone. AppType is the kind in lower case.
	IsDeployment bool   `json:"isDeployment,omitempty"`
	AppType      string `json:"appType,omitempty"`
	// UpdateTime is when the address was given or given up last, RFC 3339 with fractions of a second.
	UpdateTime string `json:"updateTime,omitempty"`
	// Status is the phase of the pod, or Deleted; empty for an address that no pod ever had.
	Status string `json:"status,omitempty"`
	// Releasable: no pod has the address.
	Releasable bool `json:"releasable"`
}

// Page describes the page of a list.
type Page struct {
	Last             bool `json:"last"`
	TotalElements    int  `json:"totalElements"`
	TotalPages       int  `json:"totalPages"`
	First            bool `json:"first"`
	NumberOfElements int  `json:"numberOfElements"`
	Size             int  `json:"size"`
	Number           int  `json:"number"`
}

// ListIPResponse answers GET /v1/ip.
type ListIPResponse struct {
	Page
	Content []FloatingIP `json:"content"`
}

// Response is what every other answer begins with, and all of a refusal.
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

// OwnedIP is an address with its owner, in the fields of a FloatingIP; what else one of those has is of no account.
type OwnedIP struct {
	IP           string `json:"ip"`
	Namespace    string `json:"namespace,omitempty"`
	AppName      string `json:"appName,omitempty"`
	PodName      string `json:"podName,omitempty"`
	PoolName     string `json:"poolName,omitempty"`
	IsDeployment bool   `json:"isDeployment,omitempty"`
	AppType      string `json:"appType,omitempty"`
}

// ReleaseIPResponse answers it.
type ReleaseIPResponse struct {
	Response
	// Unreleased are those that had been released, are somebody else's, or are in no pool.
	Unreleased []string `json:"unreleased,omitempty"`
}

// SharedPool is a shared pool.
type SharedPool struct {
	Name string `json:"name"`
	// Size is how many addresses the pool may have.
	Size int `json:"size"`
	// PreAllocateIP: it has them before a pod asks.
	PreAllocateIP bool `json:"preAllocateIP"`
}

// SetPoolRequest is the body of POST /v1/pool.
type SetPoolRequest struct {
	Name          string `json:"name"`
	Size          *int   `json:"size"`
	PreAllocateIP bool   `json:"preAllocateIP"`
}

// GetPoolResponse answers GET /v1/pool/{name}.
type GetPoolResponse struct {
	Response
	Pool SharedPool `json:"pool"`
}

// UpdatePoolResponse answers POST /v1/pool.
type UpdatePoolResponse struct {
	Response
	// RealPoolSize is how many addresses the pool has.
	RealPoolSize int `json:"realPoolSize"`
}
