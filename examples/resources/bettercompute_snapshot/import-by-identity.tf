import {
  to = bettercompute_snapshot.before_upgrade

  identity = {
    uri = "digitalocean://root/main/web/volumes/data/snapshots/before-upgrade?region=fra1&token=env://DIGITALOCEAN_TOKEN"
  }
}
