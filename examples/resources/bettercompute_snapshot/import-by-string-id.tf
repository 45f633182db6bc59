import {
  to = bettercompute_snapshot.before_upgrade
  id = "digitalocean://root/main/web/volumes/data/snapshots/before-upgrade?region=fra1&token=env://DIGITALOCEAN_TOKEN"
}
