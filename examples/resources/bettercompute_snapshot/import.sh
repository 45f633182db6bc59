# The id is the snapshot's uri: the volume's, with /snapshots/NAME behind the volume's name.
terraform import bettercompute_snapshot.before_upgrade 'digitalocean://root/main/web/volumes/data/snapshots/before-upgrade?region=fra1&token=env://DIGITALOCEAN_TOKEN'
