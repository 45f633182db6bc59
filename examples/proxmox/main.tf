# Three VMs on a Proxmox VE cluster of your own, with addresses that are known in the
# plan. The token is in PROXMOX_TOKEN, as user@realm!tokenid=secret; the guide "Proxmox
# VE" says which privileges it needs, how to make the template, and where the
# fingerprint is. Against the emulator, which takes any token of that form:
#
#   export PROXMOX_TOKEN='root@pam!tofu=anything' TF_VAR_url=https://127.0.0.1:8803
#   export TF_VAR_tls_fingerprint="AC:B9:..."   # as the emulator prints it

terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

variable "url" {
  description = "Where the API is, such as https://pve.example.com:8006."
  type        = string
}

variable "tls_fingerprint" {
  description = "The SHA-256 fingerprint of the server's certificate. Null: one that the system trusts."
  type        = string
  default     = null
}

variable "template" {
  description = "The template's name or VMID. It needs a cloud-init drive."
  type        = string
  default     = "debian-13"
}

resource "bettercompute_provider_account" "home" {
  name = "home"

  proxmox = {
    url             = var.url
    token           = "env://PROXMOX_TOKEN"
    tls_fingerprint = var.tls_fingerprint
  }
}

resource "bettercompute_pool" "k8s" {
  name             = "k8s"
  provider_account = bettercompute_provider_account.home.uri

  flavors = {
    node = "2c-4g-20d"
  }
}

resource "bettercompute_instance" "node" {
  for_each = { for i in range(3) : "node-${i}" => i }

  name  = each.key
  pool  = bettercompute_pool.k8s.uri
  offer = bettercompute_pool.k8s.flavors.node
  image = var.template

  labels = {
    role = "node"
  }

  proxmox = {
    ip_config = [
      {
        ipv4    = "10.0.0.${10 + each.value}/24"
        gateway = "10.0.0.1"
      },
    ]
    network_devices = [
      {
        bridge = "vmbr0"
      },
    ]
    on_boot = true
  }
}

output "addresses" {
  description = "Known before the VMs exist."
  value       = { for name, node in bettercompute_instance.node : name => node.address }
}
