// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

// The JSON of the API. Fields that clients dereference are never null.

type wireRegion struct {
	Name      string   `json:"name"`
	Slug      string   `json:"slug"`
	Features  []string `json:"features"`
	Available bool     `json:"available"`
	Sizes     []string `json:"sizes"`
}

type wireAmount struct {
	Amount int    `json:"amount"`
	Unit   string `json:"unit"`
}

type wireDisk struct {
	Type string     `json:"type"`
	Size wireAmount `json:"size"`
}

type wireGPU struct {
	Count int        `json:"count"`
	Model string     `json:"model"`
	VRAM  wireAmount `json:"vram"`
}

type wireSize struct {
	Slug         string     `json:"slug"`
	Memory       int        `json:"memory"`
	VCPUs        int        `json:"vcpus"`
	Disk         int        `json:"disk"`
	Transfer     float64    `json:"transfer"`
	PriceMonthly float64    `json:"price_monthly"`
	PriceHourly  float64    `json:"price_hourly"`
	Regions      []string   `json:"regions"`
	Available    bool       `json:"available"`
	Description  string     `json:"description"`
	DiskInfo     []wireDisk `json:"disk_info"`
	GPU          *wireGPU   `json:"gpu_info,omitempty"`
}

type wireImage struct {
	ID            int64    `json:"id"`
	Name          string   `json:"name"`
	Distribution  string   `json:"distribution"`
	Slug          *string  `json:"slug"`
	Public        bool     `json:"public"`
	Regions       []string `json:"regions"`
	CreatedAt     string   `json:"created_at"`
	Type          string   `json:"type"`
	MinDiskSize   int      `json:"min_disk_size"`
	SizeGigabytes float64  `json:"size_gigabytes"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	Status        string   `json:"status"`
	ErrorMessage  string   `json:"error_message"`
}

// wireSnapshot is a snapshot of a Droplet or volume in lists of snapshots.
type wireSnapshot struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	CreatedAt     string   `json:"created_at"`
	Regions       []string `json:"regions"`
	MinDiskSize   int      `json:"min_disk_size"`
	SizeGigabytes float64  `json:"size_gigabytes"`
	ResourceID    string   `json:"resource_id"`
	ResourceType  string   `json:"resource_type"`
	Tags          []string `json:"tags"`
}

type wireAction struct {
	ID           int64      `json:"id"`
	Status       string     `json:"status"`
	Type         string     `json:"type"`
	StartedAt    string     `json:"started_at"`
	CompletedAt  *string    `json:"completed_at"`
	ResourceID   *int64     `json:"resource_id"`
	ResourceType string     `json:"resource_type"`
	Region       wireRegion `json:"region"`
	RegionSlug   string     `json:"region_slug"`
}

type wireLinkedAction struct {
	ID   int64  `json:"id"`
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

type wireNetworkV4 struct {
	IPAddress string `json:"ip_address"`
	Netmask   string `json:"netmask"`
	Gateway   string `json:"gateway"`
	Type      string `json:"type"`
}

type wireNetworkV6 struct {
	IPAddress string `json:"ip_address"`
	Netmask   int    `json:"netmask"`
	Gateway   string `json:"gateway"`
	Type      string `json:"type"`
}

type wireNetworks struct {
	V4 []wireNetworkV4 `json:"v4"`
	V6 []wireNetworkV6 `json:"v6"`
}

type wireWindow struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

type wireDroplet struct {
	ID               int64        `json:"id"`
	Name             string       `json:"name"`
	Memory           int          `json:"memory"`
	VCPUs            int          `json:"vcpus"`
	Disk             int          `json:"disk"`
	DiskInfo         []wireDisk   `json:"disk_info"`
	Locked           bool         `json:"locked"`
	Status           string       `json:"status"`
	Kernel           *struct{}    `json:"kernel"`
	CreatedAt        string       `json:"created_at"`
	Features         []string     `json:"features"`
	BackupIDs        []int64      `json:"backup_ids"`
	NextBackupWindow *wireWindow  `json:"next_backup_window"`
	SnapshotIDs      []int64      `json:"snapshot_ids"`
	Image            wireImage    `json:"image"`
	VolumeIDs        []string     `json:"volume_ids"`
	Size             wireSize     `json:"size"`
	SizeSlug         string       `json:"size_slug"`
	Networks         wireNetworks `json:"networks"`
	Region           wireRegion   `json:"region"`
	Tags             []string     `json:"tags"`
	VPCUUID          string       `json:"vpc_uuid"`
	GPU              *wireGPU     `json:"gpu_info,omitempty"`
}

type wireVPC struct {
	ID          string `json:"id"`
	URN         string `json:"urn"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Region      string `json:"region"`
	IPRange     string `json:"ip_range"`
	Default     bool   `json:"default"`
	CreatedAt   string `json:"created_at"`
}

type wireKey struct {
	ID          int64  `json:"id"`
	Fingerprint string `json:"fingerprint"`
	PublicKey   string `json:"public_key"`
	Name        string `json:"name"`
}

// wireTagged counts what has a tag.
type wireTagged struct {
	Count         int    `json:"count"`
	LastTaggedURI string `json:"last_tagged_uri,omitempty"`
}

type wireTagResources struct {
	wireTagged
	Droplets        wireTagged `json:"droplets"`
	Images          wireTagged `json:"images"`
	Volumes         wireTagged `json:"volumes"`
	VolumeSnapshots wireTagged `json:"volume_snapshots"`
	Databases       wireTagged `json:"databases"`
}

type wireTag struct {
	Name      string           `json:"name"`
	Resources wireTagResources `json:"resources"`
}

// wireAssociate is something that can be destroyed with a Droplet.
type wireAssociate struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Cost is in dollars per month, as text.
	Cost string `json:"cost"`
}
