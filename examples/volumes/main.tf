# A machine with a volume in each of two clouds, and a snapshot where the cloud has
# them. As it stands this runs against the real APIs, with tokens in HCLOUD_TOKEN and
# DIGITALOCEAN_TOKEN, and costs money there. With -var hetzner=... and
# -var digitalocean=... it runs against the emulators; see the README.

terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

variable "hetzner" {
  description = "Base url of Hetzner's API, such as that of an emulator. Null: Hetzner's own."
  type        = string
  default     = null
}

variable "digitalocean" {
  description = "Base url of DigitalOcean's API, such as that of an emulator. Null: DigitalOcean's own."
  type        = string
  default     = null
}

variable "size_gib" {
  description = "Size of each volume. A larger one grows it in place; the guest then grows the filesystem."
  type        = number
  default     = 10
}

variable "attach" {
  description = "Whether the volumes hang on the machines."
  type        = bool
  default     = true
}

variable "snapshots" {
  description = "Names of the snapshots of the volume on DigitalOcean."
  type        = set(string)
  default     = []
}

resource "bettercompute_provider_account" "hetzner" {
  name = "volumes"

  hetzner_cloud = {
    token    = "env://HCLOUD_TOKEN"
    endpoint = var.hetzner
  }
}

resource "bettercompute_provider_account" "digitalocean" {
  name = "volumes"

  digitalocean = {
    token    = "env://DIGITALOCEAN_TOKEN"
    region   = "fra1"
    endpoint = var.digitalocean
  }
}

# What differs between the clouds stands here; the blocks below are the same for both.
locals {
  clouds = {
    hetzner = {
      account = bettercompute_provider_account.hetzner.uri
      offer   = "cx23"
      image   = "debian-12"
    }
    digitalocean = {
      account = bettercompute_provider_account.digitalocean.uri
      offer   = "s-1vcpu-1gb"
      image   = "debian-12-x64"
    }
  }
}

resource "bettercompute_pool" "db" {
  for_each = local.clouds

  name             = "db"
  provider_account = each.value.account

  limits = {
    disk_gib = 100
  }
}

resource "bettercompute_instance" "db" {
  for_each = local.clouds

  name  = "db"
  pool  = bettercompute_pool.db[each.key].uri
  offer = each.value.offer
  image = each.value.image
}

resource "bettercompute_provider_volume" "data" {
  for_each = local.clouds

  name       = "data"
  pool       = bettercompute_pool.db[each.key].uri
  size_gib   = var.size_gib
  filesystem = "ext4"
  instances  = var.attach ? [bettercompute_instance.db[each.key].uri] : []
}

resource "bettercompute_snapshot" "data" {
  for_each = var.snapshots

  name   = each.key
  volume = bettercompute_provider_volume.data["digitalocean"].uri
}

output "devices" {
  description = "Where each guest sees its volume."
  value       = { for cloud, volume in bettercompute_provider_volume.data : cloud => volume.device }
}
