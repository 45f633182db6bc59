# One configuration for three clouds: what differs between them is in `clouds`, and
# the blocks below are the same for all. Tokens are in HCLOUD_TOKEN, DIGITALOCEAN_TOKEN
# and PROXMOX_TOKEN. With the variables it runs against the emulators:
#
#   export TF_VAR_hetzner=http://127.0.0.1:8801/v1 TF_VAR_digitalocean=http://127.0.0.1:8802
#   export TF_VAR_proxmox='{ url = "https://127.0.0.1:8803", tls_fingerprint = "AC:B9:..." }'

terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

variable "hetzner" {
  description = "Base url of Hetzner's API. Null: Hetzner's own."
  type        = string
  default     = null
}

variable "digitalocean" {
  description = "Base url of DigitalOcean's API. Null: DigitalOcean's own."
  type        = string
  default     = null
}

variable "proxmox" {
  description = "Where the Proxmox VE API is, and its certificate's SHA-256 fingerprint."
  type = object({
    url             = string
    tls_fingerprint = optional(string)
  })
}

variable "machines" {
  description = "How many machines each cloud has."
  type        = number
  default     = 2
}

resource "bettercompute_provider_account" "hetzner" {
  name = "clouds"

  hetzner_cloud = {
    token    = "env://HCLOUD_TOKEN"
    endpoint = var.hetzner
  }
}

resource "bettercompute_provider_account" "digitalocean" {
  name = "clouds"

  digitalocean = {
    token    = "env://DIGITALOCEAN_TOKEN"
    region   = "fra1"
    endpoint = var.digitalocean
  }
}

resource "bettercompute_provider_account" "proxmox" {
  name = "clouds"

  proxmox = {
    url             = var.proxmox.url
    token           = "env://PROXMOX_TOKEN"
    tls_fingerprint = var.proxmox.tls_fingerprint
  }
}

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
    proxmox = {
      account = bettercompute_provider_account.proxmox.uri
      offer   = "1c-2g"
      image   = "debian-13"
    }
  }
  machines = merge([
    for cloud, c in local.clouds : { for i in range(var.machines) : "${cloud}-${i}" => merge(c, { cloud = cloud }) }
  ]...)
}

resource "bettercompute_pool" "web" {
  for_each = local.clouds

  name             = "web"
  provider_account = each.value.account
}

resource "bettercompute_instance" "web" {
  for_each = local.machines

  name  = each.key
  pool  = bettercompute_pool.web[each.value.cloud].uri
  offer = each.value.offer
  image = each.value.image

  labels = {
    role = "web"
  }
}

output "addresses" {
  description = "Where each machine is reached."
  value       = { for name, machine in bettercompute_instance.web : name => machine.address }
}
