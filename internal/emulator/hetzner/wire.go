// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

// The JSON of the API, as answers carry it. Fields that clients read into
// integers are integers here although the description says number.

type wirePagination struct {
	Page         int  `json:"page"`
	PerPage      int  `json:"per_page"`
	PreviousPage *int `json:"previous_page"`
	NextPage     *int `json:"next_page"`
	LastPage     *int `json:"last_page"`
	TotalEntries *int `json:"total_entries"`
}

type wireResource struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

type wireActionError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type wireAction struct {
	ID        int64            `json:"id"`
	Command   string           `json:"command"`
	Status    string           `json:"status"`
	Progress  int              `json:"progress"`
	Started   string           `json:"started"`
	Finished  *string          `json:"finished"`
	Resources []wireResource   `json:"resources"`
	Error     *wireActionError `json:"error"`
}

type wireLocation struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Country     string  `json:"country"`
	City        string  `json:"city"`
	Latitude    float64 `json:"latitude"`
	Longitude   float64 `json:"longitude"`
	NetworkZone string  `json:"network_zone"`
}

type wirePrice struct {
	Net   string `json:"net"`
	Gross string `json:"gross"`
}

type wireTypePrice struct {
	Location          string    `json:"location"`
	PriceHourly       wirePrice `json:"price_hourly"`
	PriceMonthly      wirePrice `json:"price_monthly"`
	IncludedTraffic   int64     `json:"included_traffic"`
	PricePerTBTraffic wirePrice `json:"price_per_tb_traffic"`
}

type wireDeprecation struct {
	Announced        string `json:"announced"`
	UnavailableAfter string `json:"unavailable_after"`
}

type wireTypeLocation struct {
	ID          int64            `json:"id"`
	Name        string           `json:"name"`
	Deprecation *wireDeprecation `json:"deprecation"`
	Recommended bool             `json:"recommended"`
	Available   bool             `json:"available"`
}

type wireServerType struct {
	ID           int64              `json:"id"`
	Name         string             `json:"name"`
	Description  string             `json:"description"`
	Category     string             `json:"category"`
	Cores        int                `json:"cores"`
	Memory       float64            `json:"memory"`
	Disk         int                `json:"disk"`
	StorageType  string             `json:"storage_type"`
	CPUType      string             `json:"cpu_type"`
	Architecture string             `json:"architecture"`
	Deprecated   bool               `json:"deprecated"`
	Deprecation  *wireDeprecation   `json:"deprecation"`
	Prices       []wireTypePrice    `json:"prices"`
	Locations    []wireTypeLocation `json:"locations"`
}

type wireProtection struct {
	Delete bool `json:"delete"`
}

type wireCreatedFrom struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type wireImage struct {
	ID           int64             `json:"id"`
	Type         string            `json:"type"`
	Status       string            `json:"status"`
	Name         *string           `json:"name"`
	Description  string            `json:"description"`
	ImageSize    *float64          `json:"image_size"`
	DiskSize     float64           `json:"disk_size"`
	Created      string            `json:"created"`
	CreatedFrom  *wireCreatedFrom  `json:"created_from"`
	BoundTo      *int64            `json:"bound_to"`
	OSFlavor     string            `json:"os_flavor"`
	OSVersion    *string           `json:"os_version"`
	RapidDeploy  bool              `json:"rapid_deploy"`
	Protection   wireProtection    `json:"protection"`
	Deprecated   *string           `json:"deprecated"`
	Deprecation  *wireDeprecation  `json:"deprecation"`
	Deleted      *string           `json:"deleted"`
	Labels       map[string]string `json:"labels"`
	Architecture string            `json:"architecture"`
}

type wireDNSPtr struct {
	IP     string `json:"ip"`
	DNSPtr string `json:"dns_ptr"`
}

type wireIPv4 struct {
	ID      int64  `json:"id"`
	IP      string `json:"ip"`
	Blocked bool   `json:"blocked"`
	DNSPtr  string `json:"dns_ptr"`
}

type wireIPv6 struct {
	ID      int64        `json:"id"`
	IP      string       `json:"ip"`
	Blocked bool         `json:"blocked"`
	DNSPtr  []wireDNSPtr `json:"dns_ptr"`
}

type wireAppliedFirewall struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`
}

type wirePublicNet struct {
	IPv4        *wireIPv4             `json:"ipv4"`
	IPv6        *wireIPv6             `json:"ipv6"`
	FloatingIPs []int64               `json:"floating_ips"`
	Firewalls   []wireAppliedFirewall `json:"firewalls"`
}

type wirePrivateNet struct {
	Network    int64    `json:"network"`
	IP         string   `json:"ip"`
	AliasIPs   []string `json:"alias_ips"`
	MACAddress string   `json:"mac_address"`
}

type wireServerProtection struct {
	Delete  bool `json:"delete"`
	Rebuild bool `json:"rebuild"`
}

type wireServer struct {
	ID              int64                `json:"id"`
	Name            string               `json:"name"`
	Status          string               `json:"status"`
	Created         string               `json:"created"`
	PublicNet       wirePublicNet        `json:"public_net"`
	PrivateNet      []wirePrivateNet     `json:"private_net"`
	ServerType      wireServerType       `json:"server_type"`
	Location        wireLocation         `json:"location"`
	Image           *wireImage           `json:"image"`
	ISO             *struct{}            `json:"iso"`
	RescueEnabled   bool                 `json:"rescue_enabled"`
	Locked          bool                 `json:"locked"`
	BackupWindow    *string              `json:"backup_window"`
	OutgoingTraffic *int64               `json:"outgoing_traffic"`
	IngoingTraffic  *int64               `json:"ingoing_traffic"`
	IncludedTraffic int64                `json:"included_traffic"`
	Protection      wireServerProtection `json:"protection"`
	Labels          map[string]string    `json:"labels"`
	Volumes         []int64              `json:"volumes"`
	LoadBalancers   []int64              `json:"load_balancers"`
	PrimaryDiskSize int                  `json:"primary_disk_size"`
	PlacementGroup  *wirePlacementGroup  `json:"placement_group"`
}

type wirePlacementGroup struct {
	ID      int64             `json:"id"`
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Type    string            `json:"type"`
	Created string            `json:"created"`
	Servers []int64           `json:"servers"`
}

type wirePrimaryIP struct {
	ID           int64             `json:"id"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels"`
	Created      string            `json:"created"`
	Blocked      bool              `json:"blocked"`
	Location     wireLocation      `json:"location"`
	IP           string            `json:"ip"`
	DNSPtr       []wireDNSPtr      `json:"dns_ptr"`
	Protection   wireProtection    `json:"protection"`
	Type         string            `json:"type"`
	AutoDelete   bool              `json:"auto_delete"`
	AssigneeType string            `json:"assignee_type"`
	AssigneeID   *int64            `json:"assignee_id"`
}

type wireSSHKey struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Fingerprint string            `json:"fingerprint"`
	PublicKey   string            `json:"public_key"`
	Labels      map[string]string `json:"labels"`
	Created     string            `json:"created"`
}
