// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// backupPolicy says when backups are made. No backups are made here: time is too
// short for them.
type backupPolicy struct {
	Plan    string `json:"plan"`
	Weekday string `json:"weekday,omitempty"`
	Hour    int    `json:"hour"`
}

// The days that daily and weekly backups are kept, and the hours of a window.
const (
	keptDaily   = 7
	keptWeekly  = 28
	windowHours = 4
)

func backupRoutes() []route {
	return []route{
		{"GET", "/droplets/{id}/backups", http.StatusOK, listBackups},
		{"GET", "/droplets/{id}/backups/policy", http.StatusOK, getBackupPolicy},
		{"GET", "/droplets/backups/policies", http.StatusOK, listBackupPolicies},
		{"GET", "/droplets/backups/supported_policies", http.StatusOK, listSupportedPolicies},
	}
}

func weekdays() []string { return []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} }

// check refuses a policy with words that it can't have; nil is fine.
func (p *backupPolicy) check() error {
	switch {
	case p == nil:
		return nil
	case p.Plan != "daily" && p.Plan != "weekly":
		return unprocessable("backup policy plan must be daily or weekly")
	case p.Plan == "weekly" && !slices.Contains(weekdays(), p.Weekday):
		return unprocessable("backup policy weekday is invalid")
	case p.Hour < 0 || p.Hour > 20 || p.Hour%windowHours != 0:
		return unprocessable("backup policy hour must be 0, 4, 8, 12, 16 or 20")
	}
	return nil
}

// policy is a Droplet's. Without a choice "the backup plan will default to daily"
// (the description); at which hour isn't known.
func (d *droplet) policy() backupPolicy {
	if d.Policy == nil {
		return backupPolicy{Plan: "daily"}
	}
	return *d.Policy
}

// policyText is the policy in one line, empty where there are no backups.
func (d *droplet) policyText() string {
	if !d.Backups {
		return ""
	}
	policy := d.policy()
	if policy.Plan == "weekly" {
		return fmt.Sprintf("%s %s %d", policy.Plan, policy.Weekday, policy.Hour)
	}
	return fmt.Sprintf("%s %d", policy.Plan, policy.Hour)
}

// window is when the next backup is made; nil: backups are off.
func (d *droplet) window(now time.Time) *wireWindow {
	if !d.Backups {
		return nil
	}
	policy, now := d.policy(), now.UTC()
	start := time.Date(now.Year(), now.Month(), now.Day(), policy.Hour, 0, 0, 0, time.UTC)
	for !start.After(now) || policy.Plan == "weekly" && weekdays()[start.Weekday()] != policy.Weekday {
		start = start.AddDate(0, 0, 1)
	}
	return &wireWindow{Start: stamp(start), End: stamp(start.Add(windowHours * time.Hour))}
}

func listBackups(c *call) (any, error) {
	if _, err := c.droplet(); err != nil {
		return nil, err
	}
	return list(c, "backups", []*image{}, func(i *image) any { return i.wire() })
}

func (c *call) wirePolicy(d *droplet) map[string]any {
	w := map[string]any{"droplet_id": d.ID, "backup_enabled": d.Backups, "backup_policy": nil, "next_backup_window": d.window(c.now)}
	if d.Backups {
		policy := d.policy()
		wire := map[string]any{"plan": policy.Plan, "hour": policy.Hour, "window_length_hours": windowHours, "retention_period_days": keptDaily}
		if policy.Plan == "weekly" {
			wire["weekday"], wire["retention_period_days"] = policy.Weekday, keptWeekly
		}
		w["backup_policy"] = wire
	}
	return w
}

func getBackupPolicy(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	return map[string]any{"policy": c.wirePolicy(d)}, nil
}

// listBackupPolicies answers a page of an object, not of a list.
func listBackupPolicies(c *call) (any, error) {
	page, perPage, err := c.page()
	if err != nil {
		return nil, err
	}
	all := visible(c, byID(c.p.Droplets))
	policies := map[string]any{}
	for _, d := range all[min((page-1)*perPage, len(all)):min(page*perPage, len(all))] {
		policies[formatID(d.ID)] = c.wirePolicy(d)
	}
	return map[string]any{
		"policies": policies,
		"links":    c.links(page, max(1, (len(all)+perPage-1)/perPage)),
		"meta":     map[string]any{"total": len(all)},
	}, nil
}

func listSupportedPolicies(*call) (any, error) {
	policy := func(name string, kept int, days []string) map[string]any {
		return map[string]any{
			"name": name, "possible_window_starts": []int{0, 4, 8, 12, 16, 20}, "window_length_hours": windowHours,
			"retention_period_days": kept, "possible_days": days,
		}
	}
	return map[string]any{"supported_policies": []any{
		policy("weekly", keptWeekly, weekdays()),
		policy("daily", keptDaily, []string{}),
	}}, nil
}
