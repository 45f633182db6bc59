// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import "slices"

// Where sizes are offered: in most regions, in the newer ones, with GPUs.
var (
	everywhere = []string{"ams3", "atl1", "blr1", "fra1", "lon1", "nyc1", "nyc2", "nyc3", "ric1", "sfo2", "sfo3", "sgp1", "syd1", "tor1"}
	tiny       = []string{"ams3", "fra1", "nyc1", "sfo3", "sgp1", "syd1"}
	dedicated  = []string{"ams3", "blr1", "fra1", "lon1", "nyc1", "nyc3", "sfo3", "sgp1", "syd1", "tor1"}
	premium    = []string{"ams3", "atl1", "blr1", "fra1", "lon1", "nyc1", "nyc3", "sfo3", "sgp1", "syd1", "tor1"}
	gpus       = []string{"atl1", "nyc2", "tor1"}
)

// sizes are a choice of the sizes of 2026, with prices in dollars.
func sizes() []wireSize {
	gib := 1024
	size := func(slug string, memory, vcpus, disk int, transfer, monthly, hourly float64, description string, where []string) wireSize {
		return wireSize{
			Slug: slug, Memory: memory, VCPUs: vcpus, Disk: disk, Transfer: transfer,
			PriceMonthly: monthly, PriceHourly: hourly, Regions: slices.Clone(where), Available: true,
			Description: description,
			DiskInfo:    []wireDisk{{Type: "local", Size: wireAmount{disk, "gib"}}},
		}
	}
	gpu := func(s wireSize, count int, model string, vram, scratch int) wireSize {
		s.GPU = &wireGPU{Count: count, Model: model, VRAM: wireAmount{vram, "gib"}}
		if scratch > 0 {
			s.DiskInfo = append(s.DiskInfo, wireDisk{Type: "scratch", Size: wireAmount{scratch, "gib"}})
		}
		return s
	}
	retired := size("s-3vcpu-1gb", gib, 3, 60, 3, 18, 0.02679, "Basic", nil)
	retired.Available, retired.Regions = false, []string{}
	return []wireSize{
		size("s-1vcpu-512mb-10gb", 512, 1, 10, 0.5, 4, 0.00595, "Basic", tiny),
		size("s-1vcpu-1gb", gib, 1, 25, 1, 6, 0.00893, "Basic", everywhere),
		size("s-1vcpu-1gb-amd", gib, 1, 25, 1, 7, 0.01042, "Basic AMD", premium),
		size("s-1vcpu-1gb-intel", gib, 1, 25, 1, 7, 0.01042, "Basic Intel", premium),
		size("s-1vcpu-2gb", 2*gib, 1, 50, 2, 12, 0.01786, "Basic", everywhere),
		size("s-1vcpu-2gb-amd", 2*gib, 1, 50, 2, 14, 0.02083, "Basic AMD", premium),
		size("s-1vcpu-2gb-intel", 2*gib, 1, 50, 2, 14, 0.02083, "Basic Intel", premium),
		retired,
		size("s-2vcpu-2gb", 2*gib, 2, 60, 3, 18, 0.02679, "Basic", everywhere),
		size("s-2vcpu-4gb", 4*gib, 2, 80, 4, 24, 0.03571, "Basic", everywhere),
		size("s-2vcpu-4gb-amd", 4*gib, 2, 80, 4, 28, 0.04167, "Basic AMD", premium),
		size("s-2vcpu-4gb-intel", 4*gib, 2, 80, 4, 28, 0.04167, "Basic Intel", premium),
		size("c-2", 4*gib, 2, 25, 4, 42, 0.0625, "CPU-Optimized", dedicated),
		size("c2-2vcpu-4gb", 4*gib, 2, 50, 4, 47, 0.06994, "CPU-Optimized 2x SSD", dedicated),
		size("s-4vcpu-8gb", 8*gib, 4, 160, 5, 48, 0.07143, "Basic", everywhere),
		size("s-4vcpu-8gb-amd", 8*gib, 4, 160, 5, 56, 0.08333, "Basic AMD", premium),
		size("s-4vcpu-8gb-intel", 8*gib, 4, 160, 5, 56, 0.08333, "Basic Intel", premium),
		size("g-2vcpu-8gb", 8*gib, 2, 25, 4, 63, 0.09375, "General Purpose", dedicated),
		size("gd-2vcpu-8gb", 8*gib, 2, 50, 4, 68, 0.10119, "General Purpose 2x SSD", dedicated),
		size("m-2vcpu-16gb", 16*gib, 2, 50, 4, 84, 0.125, "Memory-Optimized", dedicated),
		size("c-4", 8*gib, 4, 50, 5, 84, 0.125, "CPU-Optimized", dedicated),
		size("s-8vcpu-16gb", 16*gib, 8, 320, 6, 96, 0.14286, "Basic", everywhere),
		size("s-8vcpu-16gb-amd", 16*gib, 8, 320, 6, 112, 0.16667, "Basic AMD", premium),
		size("s-8vcpu-16gb-intel", 16*gib, 8, 320, 6, 112, 0.16667, "Basic Intel", premium),
		size("g-4vcpu-16gb", 16*gib, 4, 50, 5, 126, 0.1875, "General Purpose", dedicated),
		size("so-2vcpu-16gb", 16*gib, 2, 300, 4, 131, 0.19494, "Storage-Optimized", dedicated),
		size("m-4vcpu-32gb", 32*gib, 4, 100, 6, 168, 0.25, "Memory-Optimized", dedicated),
		size("c-8", 16*gib, 8, 100, 6, 168, 0.25, "CPU-Optimized", dedicated),
		gpu(size("gpu-l40sx1-48gb", 64*gib, 8, 500, 10, 1168.08, 1.57, "L40S GPU - 1X", gpus), 1, "nvidia_l40s", 48, 0),
		gpu(size("gpu-h100x1-80gb", 240*gib, 20, 720, 15, 2522.16, 3.39, "H100 GPU - 1X", gpus), 1, "nvidia_h100", 80, 5120),
		gpu(size("gpu-h100x8-640gb", 1920*gib, 160, 2046, 60, 17796.48, 23.92, "H100 GPU - 8X", gpus[1:2]), 8, "nvidia_h100", 640, 40960),
	}
}
