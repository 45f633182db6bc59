# The id is the instance's uri: the pool's without its limits, with /instances/NAME, and /MACHINE-ID for a machine that carries no marks of ours.
terraform import 'bettercompute_instance.web["web-0"]' 'hetzner-cloud://root/main/web/instances/web-0?token=env://HCLOUD_TOKEN'
terraform import bettercompute_instance.db 'hetzner-cloud://root/main/web/instances/db/4711?token=env://HCLOUD_TOKEN'
