// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1ybq0tWqR0pXvPSZbbL8gTkpNTM0z3eJk7sP3b4WmN someone@example.com"

// TestCatalog looks at what the cloud offers, in pages and as a whole.
func TestCatalog(t *testing.T) {
	client := serve(t, digitalocean.New(digitalocean.Options{}))
	account := must[*godo.Account](t)(client.Account.Get(t.Context()))
	if account.Status != "active" || account.DropletLimit < 1 || account.VolumeLimit != 0 {
		t.Errorf("account %+v", account)
	}
	regions := must[[]godo.Region](t)(client.Regions.List(t.Context(), &godo.ListOptions{PerPage: 200}))
	sizes := must[[]godo.Size](t)(client.Sizes.List(t.Context(), &godo.ListOptions{PerPage: 200}))
	closed, bare := 0, 0
	for _, r := range regions {
		if !r.Available {
			closed++
		}
		if !slices.Contains(r.Features, "storage") {
			bare++
		}
		for _, slug := range r.Sizes {
			i := slices.IndexFunc(sizes, func(s godo.Size) bool { return s.Slug == slug })
			if i < 0 || !slices.Contains(sizes[i].Regions, r.Slug) {
				t.Errorf("%s has %s, but not the other way round", r.Slug, slug)
			}
		}
	}
	if closed != 1 || bare != 1 {
		t.Errorf("%d closed regions, %d without storage", closed, bare)
	}

	var paged []string
	unavailable, gpus := 0, 0
	for options := (&godo.ListOptions{PerPage: 7}); ; options.Page++ {
		options.Page = max(1, options.Page)
		page, response, err := client.Sizes.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			paged = append(paged, s.Slug)
			if !s.Available {
				unavailable++
			}
			if s.GPUInfo != nil {
				gpus++
			}
			if s.PriceMonthly <= 0 || s.PriceHourly <= 0 || s.Description == "" {
				t.Errorf("size %+v", s)
			}
		}
		if current, err := response.Links.CurrentPage(); err != nil || current != options.Page {
			t.Errorf("page %d says it is %d (%v)", options.Page, current, err)
		}
		if response.Meta.Total != len(sizes) {
			t.Errorf("total %d of %d", response.Meta.Total, len(sizes))
		}
		if response.Links.IsLastPage() {
			break
		}
	}
	if len(paged) != len(sizes) || len(sizes) > 199 || unavailable != 1 || gpus == 0 {
		t.Errorf("%d sizes in pages, %d at once, %d unavailable, %d with GPUs", len(paged), len(sizes), unavailable, gpus)
	}
}

func TestImages(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	all := &godo.ListOptions{PerPage: 200}
	for slug, list := range map[string]func(context.Context, *godo.ListOptions) ([]godo.Image, *godo.Response, error){
		"debian-12-x64": client.Images.ListDistribution, "docker-20-04": client.Images.ListApplication,
	} {
		images := must[[]godo.Image](t)(list(t.Context(), all))
		if !slices.ContainsFunc(images, func(i godo.Image) bool { return i.Slug == slug }) {
			t.Errorf("%s is not among %d images", slug, len(images))
		}
	}
	debian := must[*godo.Image](t)(client.Images.GetBySlug(t.Context(), "debian-12-x64"))
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	must[*godo.Action](t)(client.DropletActions.Snapshot(t.Context(), d.ID, "first"))
	own := must[[]godo.Image](t)(client.Images.ListUser(t.Context(), all))
	if len(own) != 1 || own[0].Name != "first" || own[0].Slug != "" || own[0].Public || own[0].Type != "snapshot" || own[0].MinDiskSize != 25 {
		t.Fatalf("own images %+v", own)
	}
	if of := must[[]godo.Image](t)(client.Droplets.Snapshots(t.Context(), d.ID, nil)); len(of) != 1 || of[0].ID != own[0].ID {
		t.Errorf("snapshots of the Droplet %+v", of)
	}
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); !slices.Equal(got.SnapshotIDs, []int{own[0].ID}) {
		t.Errorf("snapshot ids %v", got.SnapshotIDs)
	}
	resource := []godo.Resource{{ID: strconv.Itoa(own[0].ID), Type: godo.ImageResourceType}}
	must[*godo.Tag](t)(client.Tags.Create(t.Context(), &godo.TagCreateRequest{Name: "kept"}))
	done(t)(client.Tags.TagResources(t.Context(), "kept", &godo.TagResourcesRequest{Resources: resource}))
	if tagged := must[[]godo.Image](t)(client.Images.ListByTag(t.Context(), "kept", all)); len(tagged) != 1 || tagged[0].ID != own[0].ID {
		t.Errorf("images with the tag %+v", tagged)
	}

	// A snapshot makes Droplets, and a retired image is kept by its own.
	request := small("b")
	request.Image = godo.DropletCreateImage{ID: own[0].ID}
	other := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), request))
	if of := must[[]godo.Image](t)(client.Droplets.Snapshots(t.Context(), other.ID, nil)); len(of) != 0 {
		t.Errorf("snapshots of another Droplet %+v", of)
	}
	if !s.RetireImage("debian-12-x64") {
		t.Fatal("no such image")
	}
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); got.Image.ID != debian.ID || got.Image.Slug != "" {
		t.Errorf("image %+v", got.Image)
	}
	if got := must[*godo.Image](t)(client.Images.GetByID(t.Context(), debian.ID)); got.Status != "retired" {
		t.Errorf("retired image %+v", got)
	}
	for _, i := range must[[]godo.Image](t)(client.Images.List(t.Context(), all)) {
		if i.Status != "available" || i.ID == debian.ID {
			t.Errorf("a retired image is listed: %+v", i)
		}
	}
	_, _, err := client.Droplets.Create(t.Context(), small("c"))
	refusal(t, err, 422, "invalid image")
	added := s.AddImage(digitalocean.Image{Slug: "debian-12-x64", Name: "12 x64", Distribution: "Debian", MinDisk: 7})
	if got := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("c"))); int64(got.Image.ID) != added {
		t.Errorf("image %+v, want %d", got.Image, added)
	}

	renamed := must[*godo.Image](t)(client.Images.Update(t.Context(), own[0].ID, &godo.ImageUpdateRequest{Name: "second"}))
	if renamed.Name != "second" {
		t.Errorf("renamed to %q", renamed.Name)
	}
	done(t)(client.Images.Delete(t.Context(), own[0].ID))
	_, _, err = client.Images.GetByID(t.Context(), own[0].ID)
	refusal(t, err, 404, "could not be found")
	_, err = client.Images.Delete(t.Context(), debian.ID)
	refusal(t, err, 403, "")
}

func TestKeys(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	key := must[*godo.Key](t)(client.Keys.Create(t.Context(), &godo.KeyCreateRequest{Name: "mine", PublicKey: publicKey}))
	if len(strings.Split(key.Fingerprint, ":")) != 16 {
		t.Errorf("fingerprint %q", key.Fingerprint)
	}
	_, _, err := client.Keys.Create(t.Context(), &godo.KeyCreateRequest{Name: "again", PublicKey: publicKey})
	refusal(t, err, 422, "already in use")
	_, _, err = client.Keys.Create(t.Context(), &godo.KeyCreateRequest{Name: "bad", PublicKey: "hello"})
	refusal(t, err, 422, "Key invalid")
	if got := must[*godo.Key](t)(client.Keys.GetByFingerprint(t.Context(), key.Fingerprint)); got.ID != key.ID {
		t.Errorf("by fingerprint: %+v", got)
	}
	request := small("a")
	request.SSHKeys = []godo.DropletCreateSSHKey{{Fingerprint: key.Fingerprint}, {ID: key.ID}}
	must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), request))
	if got := s.Droplets()[0].SSHKeys; !slices.Equal(got, []int64{int64(key.ID)}) {
		t.Errorf("keys of the Droplet %v", got)
	}
	request.SSHKeys = append(request.SSHKeys, godo.DropletCreateSSHKey{ID: 4711})
	_, _, err = client.Droplets.Create(t.Context(), request)
	refusal(t, err, 422, "4711 are invalid key identifiers")
	if got := must[*godo.Key](t)(client.Keys.UpdateByID(t.Context(), key.ID, &godo.KeyUpdateRequest{Name: "yours"})); got.Name != "yours" {
		t.Errorf("renamed: %+v", got)
	}
	if got := must[[]godo.Key](t)(client.Keys.List(t.Context(), nil)); len(got) != 1 {
		t.Errorf("keys %+v", got)
	}
	done(t)(client.Keys.DeleteByID(t.Context(), key.ID))
	_, err = client.Keys.DeleteByID(t.Context(), key.ID)
	refusal(t, err, 404, "")
}

func TestVPCs(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	standard := must[*godo.VPC](t)(client.VPCs.Get(t.Context(), d.VPCUUID))
	if !standard.Default || standard.RegionSlug != "fra1" {
		t.Errorf("default VPC %+v", standard)
	}
	made := must[*godo.VPC](t)(client.VPCs.Create(t.Context(), &godo.VPCCreateRequest{Name: "net", RegionSlug: "fra1", IPRange: "10.10.10.0/24"}))
	request := small("b")
	request.VPCUUID = made.ID
	inside := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), request))
	inside = must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), inside.ID))
	if private, err := inside.PrivateIPv4(); err != nil || private != "10.10.10.2" || inside.VPCUUID != made.ID {
		t.Errorf("private %s %v in %s", private, err, inside.VPCUUID)
	}
	for range 260 {
		d := *request
		must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), &d))
	}
	request.Region = "nyc1"
	_, _, err := client.Droplets.Create(t.Context(), request)
	refusal(t, err, 422, "region")
	_, _, err = client.VPCs.Create(t.Context(), &godo.VPCCreateRequest{Name: "other", RegionSlug: "fra1", IPRange: "10.10.0.0/16"})
	refusal(t, err, 422, "overlaps")
	_, err = client.VPCs.Delete(t.Context(), made.ID)
	refusal(t, err, 409, "members")
	_, err = client.VPCs.Delete(t.Context(), standard.ID)
	refusal(t, err, 403, "default")
	listed := must[[]*godo.VPC](t)(client.VPCs.List(t.Context(), nil))
	if len(listed) != 2 {
		t.Errorf("%d VPCs", len(listed))
	}
	empty := must[*godo.VPC](t)(client.VPCs.Create(t.Context(), &godo.VPCCreateRequest{Name: "empty", RegionSlug: "fra1"}))
	done(t)(client.VPCs.Delete(t.Context(), empty.ID))

	// Addresses stay unique past the first range.
	public := map[string]bool{}
	for options := (&godo.ListOptions{PerPage: 200, Page: 1}); options.Page < 3; options.Page++ {
		for _, d := range must[[]godo.Droplet](t)(client.Droplets.List(t.Context(), options)) {
			address, err := d.PublicIPv4()
			if err != nil || public[address] {
				t.Errorf("address %s %v", address, err)
			}
			public[address] = true
		}
	}
	if len(public) != 262 || !public["203.0.113.2"] || !public["198.18.0.2"] {
		t.Errorf("%d addresses", len(public))
	}
}

// TestDroplet makes, finds, changes and deletes a Droplet.
func TestDroplet(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	request := small("a")
	request.IPv6, request.Monitoring, request.Backups = true, true, true
	request.BackupPolicy = &godo.DropletBackupPolicyRequest{Plan: "weekly", Weekday: "SUN", Hour: new(20)}
	request.Tags = []string{"better-compute", "Better-Compute:key:x"}
	request.UserData = "#cloud-config\n"
	made, response, err := client.Droplets.Create(t.Context(), request)
	if err != nil || response.StatusCode != http.StatusAccepted {
		t.Fatalf("%v %v", response, err)
	}
	if len(response.Links.Actions) != 1 || response.Links.Actions[0].Rel != "create" {
		t.Fatalf("links %+v", response.Links)
	}
	action := must[*godo.Action](t)(client.DropletActions.GetByURI(t.Context(), response.Links.Actions[0].HREF))
	if action.Status != godo.ActionCompleted || action.Type != "create" || action.ResourceID != made.ID || action.CompletedAt == nil || action.RegionSlug != "fra1" {
		t.Errorf("action %+v", action)
	}
	got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), made.ID))
	public4, err4 := got.PublicIPv4()
	private4, errPrivate := got.PrivateIPv4()
	public6, err6 := got.PublicIPv6()
	if got.Status != "active" || got.Locked || got.Region.Slug != "fra1" || got.Size.PriceMonthly != 6 || got.Memory != 1024 || got.Disk != 25 ||
		errors.Join(err4, errPrivate, err6) != nil || public4 != "203.0.113.2" || !strings.HasPrefix(private4, "10.") || !strings.HasPrefix(public6, "2001:db8:") ||
		!slices.Equal(got.Tags, request.Tags) || got.NextBackupWindow == nil || got.VolumeIDs == nil {
		t.Errorf("Droplet %+v", got)
	}
	for _, feature := range []string{"ipv6", "monitoring", "backups", "droplet_agent"} {
		if !slices.Contains(got.Features, feature) {
			t.Errorf("no %s in %v", feature, got.Features)
		}
	}
	if s.Droplets()[0].UserData != request.UserData {
		t.Error("the user data was not kept")
	}
	// Names are not unique, and found in any case; tags too.
	twin := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("A")))
	if found := must[[]godo.Droplet](t)(client.Droplets.ListByName(t.Context(), "a", nil)); len(found) != 2 {
		t.Errorf("%d with the name", len(found))
	}
	found := must[[]godo.Droplet](t)(client.Droplets.ListByTag(t.Context(), "better-compute:KEY:x", &godo.ListOptions{PerPage: 200}))
	if len(found) != 1 || found[0].ID != made.ID || twin.ID <= made.ID {
		t.Errorf("with the tag: %+v", found)
	}
	done(t)(client.Droplets.Delete(t.Context(), made.ID))
	_, _, err = client.Droplets.Get(t.Context(), made.ID)
	refusal(t, err, 404, "The resource you were accessing could not be found.")
	_, err = client.Droplets.Delete(t.Context(), made.ID)
	refusal(t, err, 404, "")
	// Its tags stay, with nothing.
	if tag := must[*godo.Tag](t)(client.Tags.Get(t.Context(), "better-compute")); tag.Resources.Count != 0 {
		t.Errorf("tag %+v", tag.Resources)
	}
}

func TestSeveralAndGPUs(t *testing.T) {
	client := serve(t, digitalocean.New(digitalocean.Options{}))
	several, response, err := client.Droplets.CreateMultiple(t.Context(), &godo.DropletMultiCreateRequest{
		Names: []string{"a", "b", "c"}, Size: "s-1vcpu-1gb", Region: "nyc", Image: godo.DropletCreateImage{Slug: "debian-12-x64"}, Tags: []string{"web"},
	})
	if err != nil || len(several) != 3 || len(response.Links.Actions) != 3 || several[0].Region.Slug != "nyc1" {
		t.Fatalf("%+v %v", several, err)
	}
	gpu := small("gpu")
	gpu.Size, gpu.Region, gpu.Image = "gpu-h100x1-80gb", "tor1", godo.DropletCreateImage{Slug: "gpu-h100x1-base"}
	must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), gpu))
	if plain := must[[]godo.Droplet](t)(client.Droplets.List(t.Context(), nil)); len(plain) != 3 {
		t.Errorf("%d without GPUs", len(plain))
	}
	if with := must[[]godo.Droplet](t)(client.Droplets.ListWithGPUs(t.Context(), nil)); len(with) != 1 || with[0].Name != "gpu" {
		t.Errorf("with GPUs: %+v", with)
	}
	actions := must[[]godo.Action](t)(client.DropletActions.PowerOffByTag(t.Context(), "web"))
	if len(actions) != 3 || actions[0].Type != "power_off" {
		t.Errorf("actions %+v", actions)
	}
	all := must[[]godo.Action](t)(client.Actions.List(t.Context(), &godo.ListOptions{PerPage: 200}))
	if len(all) != 7 || all[0].ID < all[6].ID || all[6].Type != "create" {
		t.Errorf("all actions %+v", all)
	}
	of := must[[]godo.Action](t)(client.Droplets.Actions(t.Context(), several[0].ID, nil))
	if len(of) != 2 || of[0].Type != "power_off" {
		t.Errorf("actions of one %+v", of)
	}
	if got := must[*godo.Action](t)(client.DropletActions.Get(t.Context(), several[0].ID, of[0].ID)); got.ID != of[0].ID {
		t.Errorf("action %+v", got)
	}
	_, _, err = client.DropletActions.Get(t.Context(), several[1].ID, of[0].ID)
	refusal(t, err, 404, "")
	done(t)(client.Droplets.DeleteByTag(t.Context(), "web"))
	if left := must[[]godo.Droplet](t)(client.Droplets.List(t.Context(), nil)); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	_, err = client.Droplets.DeleteByTag(t.Context(), "none")
	refusal(t, err, 404, "")
}

// TestActions does all that can be done to a Droplet.
func TestActions(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	do := client.DropletActions
	acted := func(kind string) func(*godo.Action, *godo.Response, error) {
		return func(a *godo.Action, r *godo.Response, err error) {
			t.Helper()
			if err != nil || r.StatusCode != http.StatusCreated || a.Type != kind || a.Status != godo.ActionCompleted || a.ResourceType != "droplet" || a.ResourceID != d.ID {
				t.Fatalf("%+v %v", a, err)
			}
		}
	}
	status := func(want string) {
		t.Helper()
		if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); got.Status != want {
			t.Errorf("status %s, want %s", got.Status, want)
		}
	}
	_, _, err := do.PowerOn(t.Context(), d.ID)
	refusal(t, err, 422, "already powered on")
	_, _, err = do.Resize(t.Context(), d.ID, "s-2vcpu-4gb", false)
	refusal(t, err, 422, "must be powered off")
	acted("power_off")(do.PowerOff(t.Context(), d.ID))
	status("off")
	_, _, err = do.PowerOff(t.Context(), d.ID)
	refusal(t, err, 422, "Droplet is already powered off.")
	_, _, err = do.Reboot(t.Context(), d.ID)
	refusal(t, err, 422, "currently off")

	acted("resize")(do.Resize(t.Context(), d.ID, "s-2vcpu-4gb", false))
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); got.SizeSlug != "s-2vcpu-4gb" || got.Memory != 4096 || got.Disk != 25 {
		t.Errorf("resized: %+v", got)
	}
	acted("resize")(do.Resize(t.Context(), d.ID, "s-2vcpu-4gb", true))
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); got.Disk != 80 {
		t.Errorf("disk %d", got.Disk)
	}
	_, _, err = do.Resize(t.Context(), d.ID, "s-1vcpu-1gb", false)
	refusal(t, err, 422, "decrease size")
	_, _, err = do.Resize(t.Context(), d.ID, "gpu-h100x1-80gb", false)
	refusal(t, err, 422, "Size is not available in this region.")
	if !s.SetSize("gpu-h100x1-80gb", "fra1") {
		t.Fatal("no such size")
	}
	_, _, err = do.Resize(t.Context(), d.ID, "gpu-h100x1-80gb", false)
	refusal(t, err, 422, "invalid size")
	status("off")
	acted("power_on")(do.PowerOn(t.Context(), d.ID))
	acted("power_cycle")(do.PowerCycle(t.Context(), d.ID))
	acted("reboot")(do.Reboot(t.Context(), d.ID))
	status("active")

	acted("rename")(do.Rename(t.Context(), d.ID, "b"))
	_, _, err = do.Rename(t.Context(), d.ID, "a_b")
	refusal(t, err, 422, "hostname")
	acted("enable_ipv6")(do.EnableIPv6(t.Context(), d.ID))
	_, _, err = do.EnableIPv6(t.Context(), d.ID)
	refusal(t, err, 422, "already")
	acted("enable_backups")(do.EnableBackups(t.Context(), d.ID))
	_, _, err = do.EnableBackups(t.Context(), d.ID)
	refusal(t, err, 422, "already enabled")
	if got := must[*godo.DropletBackupPolicy](t)(client.Droplets.GetBackupPolicy(t.Context(), d.ID)); got.BackupPolicy.Plan != "daily" {
		t.Errorf("policy by default %+v", got)
	}
	acted("disable_backups")(do.DisableBackups(t.Context(), d.ID))
	_, _, err = do.ChangeBackupPolicy(t.Context(), d.ID, &godo.DropletBackupPolicyRequest{Plan: "daily", Hour: new(4)})
	refusal(t, err, 422, "not enabled")
	acted("enable_backups")(do.EnableBackupsWithPolicy(t.Context(), d.ID, &godo.DropletBackupPolicyRequest{Plan: "daily", Hour: new(4)}))
	acted("change_backup_policy")(do.ChangeBackupPolicy(t.Context(), d.ID, &godo.DropletBackupPolicyRequest{Plan: "weekly", Weekday: "MON", Hour: new(8)}))
	_, _, err = do.ChangeBackupPolicy(t.Context(), d.ID, &godo.DropletBackupPolicyRequest{Plan: "hourly", Hour: new(8)})
	refusal(t, err, 422, "plan")
	if got := must[*godo.DropletBackupPolicy](t)(client.Droplets.GetBackupPolicy(t.Context(), d.ID)); got.BackupPolicy.Weekday != "MON" || !got.BackupEnabled ||
		got.NextBackupWindow.Start.Weekday() != time.Monday || got.NextBackupWindow.Start.Hour() != 8 || !got.NextBackupWindow.Start.After(time.Now()) {
		t.Errorf("policy %+v", got)
	}
	acted("disable_backups")(do.DisableBackups(t.Context(), d.ID))
	_, _, err = do.DisableBackups(t.Context(), d.ID)
	refusal(t, err, 422, "not enabled")

	before := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID))
	acted("rebuild")(do.RebuildByImageSlug(t.Context(), d.ID, "ubuntu-24-04-x64"))
	acted("rebuild")(do.RebuildByImageID(t.Context(), d.ID, before.Image.ID))
	acted("rebuild")(do.RebuildByImageSlug(t.Context(), d.ID, "ubuntu-24-04-x64"))
	after := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID))
	if after.Image.Slug != "ubuntu-24-04-x64" || after.Name != "b" || after.Networks.V4[1].IPAddress != before.Networks.V4[1].IPAddress || len(after.Networks.V6) != 1 {
		t.Errorf("rebuilt: %+v", after)
	}
	_, _, err = do.RebuildByImageSlug(t.Context(), d.ID, "none")
	refusal(t, err, 422, "invalid image")
	acted("snapshot")(do.Snapshot(t.Context(), d.ID, "x"))
	_, _, err = do.PasswordReset(t.Context(), d.ID)
	refusal(t, err, 422, "Invalid type")
	_, _, err = do.PowerOn(t.Context(), 1)
	refusal(t, err, 404, "")
}

func TestTags(t *testing.T) {
	client := serve(t, digitalocean.New(digitalocean.Options{}))
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	resources := []godo.Resource{{ID: strconv.Itoa(d.ID), Type: godo.DropletResourceType}}
	_, err := client.Tags.TagResources(t.Context(), "Web", &godo.TagResourcesRequest{Resources: resources})
	refusal(t, err, 404, "")
	long := "better-compute:key:" + strings.Repeat("a", 52)
	for _, good := range []string{"Web", "web", long} {
		must[*godo.Tag](t)(client.Tags.Create(t.Context(), &godo.TagCreateRequest{Name: good}))
	}
	// The first spelling stays, even after the tag was deleted.
	for range 2 {
		if tag := must[*godo.Tag](t)(client.Tags.Create(t.Context(), &godo.TagCreateRequest{Name: "wEB"})); tag.Name != "Web" {
			t.Errorf("spelled %q", tag.Name)
		}
		done(t)(client.Tags.TagResources(t.Context(), "WEB", &godo.TagResourcesRequest{Resources: resources}))
		tag := must[*godo.Tag](t)(client.Tags.Get(t.Context(), "web"))
		if tag.Name != "Web" || tag.Resources.Count != 1 || tag.Resources.Droplets.Count != 1 || !strings.HasSuffix(tag.Resources.LastTaggedURI, "/v2/droplets/"+strconv.Itoa(d.ID)) {
			t.Errorf("tag %+v", tag)
		}
		if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); !slices.Equal(got.Tags, []string{"Web"}) {
			t.Errorf("tags %v", got.Tags)
		}
		done(t)(client.Tags.Delete(t.Context(), "web"))
		if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); len(got.Tags) != 0 {
			t.Errorf("tags after the tag's deletion %v", got.Tags)
		}
	}
	done(t)(client.Tags.TagResources(t.Context(), long, &godo.TagResourcesRequest{Resources: resources}))
	if all := must[[]godo.Tag](t)(client.Tags.List(t.Context(), nil)); len(all) != 1 || all[0].Name != long {
		t.Errorf("tags %+v", all)
	}
	done(t)(client.Tags.UntagResources(t.Context(), long, &godo.UntagResourcesRequest{Resources: resources}))
	done(t)(client.Tags.UntagResources(t.Context(), long, &godo.UntagResourcesRequest{Resources: resources}))
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); len(got.Tags) != 0 {
		t.Errorf("tags after untagging %v", got.Tags)
	}
	_, err = client.Tags.TagResources(t.Context(), long, &godo.TagResourcesRequest{Resources: append(resources, godo.Resource{ID: "4711", Type: godo.DropletResourceType})})
	refusal(t, err, 404, "")
	if got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID)); len(got.Tags) != 0 {
		t.Errorf("a refused call tagged: %v", got.Tags)
	}
}
