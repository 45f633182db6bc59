# Two machines on Hetzner Cloud. As it stands this runs against the real API, with a
# token in HCLOUD_TOKEN, and costs money there while the machines exist. With
# -var endpoint=... it runs against the emulator; see the README.

terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

variable "endpoint" {
  description = "The API's base url, such as that of an emulator. Null: Hetzner's own."
  type        = string
  default     = null
}

variable "machines" {
  description = "Names of the machines."
  type        = set(string)
  default     = ["web-0", "web-1"]
}

variable "ssh_keys" {
  description = "Public keys that may log in, as lines of an authorized_keys file."
  type        = list(string)
  default     = []
}

# An account is a resource, so the provider needs no block. It records where the
# token is, not the token. Its name is part of every machine's id: no two
# configurations may use one name for the same project.
resource "bettercompute_provider_account" "main" {
  name = "main"

  hetzner_cloud = {
    token    = "env://HCLOUD_TOKEN"
    endpoint = var.endpoint
  }
}

resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri

  flavors = {
    small = "cx23"
  }

  limits = {
    instances = 5
  }
}

resource "bettercompute_instance" "web" {
  for_each = var.machines

  name     = each.key
  pool     = bettercompute_pool.web.uri
  offer    = bettercompute_pool.web.flavors.small
  image    = "debian-12"
  ssh_keys = var.ssh_keys
}

output "addresses" {
  description = "Where each machine is reached."
  value       = { for name, machine in bettercompute_instance.web : name => machine.address }
}

output "states" {
  description = "What each machine does."
  value       = { for name, machine in bettercompute_instance.web : name => machine.state }
}
