# The volume says nothing of the instance, so that the instance's user data can name it.
resource "bettercompute_provider_volume" "data" {
  name       = "data"
  pool       = bettercompute_pool.web.uri
  size_gib   = 50
  filesystem = "ext4"
}

resource "bettercompute_instance" "db" {
  name  = "db-0"
  pool  = bettercompute_pool.web.uri
  offer = "cx23"
  image = "debian-12"

  user_data = <<-EOT
    #cloud-config
    mounts:
      - ["${bettercompute_provider_volume.data.device}", "/mnt/data", "ext4", "discard,defaults,nofail,x-systemd.device-timeout=5min"]
  EOT
}

resource "bettercompute_volume_attachment" "data" {
  volume   = bettercompute_provider_volume.data.uri
  instance = bettercompute_instance.db.uri
}
