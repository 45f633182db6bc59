resource "bettercompute_instance" "web" {
  for_each = toset(["web-0", "web-1"])

  name     = each.key
  pool     = bettercompute_pool.web.uri
  offer    = bettercompute_pool.web.flavors.small
  image    = "debian-12"
  ssh_keys = [trimspace(file("~/.ssh/id_ed25519.pub"))]

  user_data = <<-EOT
    #cloud-config
    packages:
      - nginx
  EOT

  labels = {
    role = "web"
  }
}

# With what only Hetzner Cloud has, and with resources of Hetzner's own provider.
resource "hcloud_firewall" "ssh" {
  name = "ssh"

  rule {
    direction  = "in"
    protocol   = "tcp"
    port       = "22"
    source_ips = ["203.0.113.0/24"]
  }
}

resource "bettercompute_instance" "db" {
  name                = "db"
  pool                = bettercompute_pool.web.uri
  offer               = "ccx13"
  image               = "ubuntu-24.04"
  region              = "hel1"
  deletion_protection = true
  on_image_change     = "reinstall"

  hetzner_cloud = {
    firewall_ids = [hcloud_firewall.ssh.id]
    public_ipv6  = false
    backups      = true
  }

  timeouts = {
    create = "10m"
  }
}

resource "hcloud_rdns" "db" {
  server_id  = bettercompute_instance.db.machine_id
  ip_address = bettercompute_instance.db.ipv4
  dns_ptr    = "db.example.com"
}
