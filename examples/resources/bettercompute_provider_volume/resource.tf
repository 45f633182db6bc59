# A disk that is formatted, and attached to an instance.
resource "bettercompute_provider_volume" "data" {
  name       = "data"
  pool       = bettercompute_pool.web.uri
  size_gib   = 50
  filesystem = "ext4"
  instances  = [bettercompute_instance.db.uri]

  labels = {
    role = "db"
  }
}

# A copy of it, made from a snapshot, beside the first one.
resource "bettercompute_provider_volume" "copy" {
  name          = "copy"
  pool          = bettercompute_pool.ocean.uri
  region        = "fra1"
  size_gib      = 50
  from_snapshot = bettercompute_snapshot.first.uri
  instances     = []
}

# A network file share for several instances of one network, where the cloud has them.
resource "bettercompute_provider_volume" "files" {
  name       = "files"
  pool       = bettercompute_pool.ocean.uri
  region     = "nyc2"
  kind       = "shared"
  size_gib   = 100
  network_id = digitalocean_vpc.files.id
  instances  = [for i in bettercompute_instance.app : i.uri]
}

# What a guest mounts.
output "mount" {
  value = bettercompute_provider_volume.files.mount.source
}
