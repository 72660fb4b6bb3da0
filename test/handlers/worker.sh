#!/usr/bin/env bash
# A worker without any SDK: it asks for jobs with curl and reads them with jq. Each job gets a greeting.
set -u

auth="Authorization: ${RUNPOD_AI_API_KEY:-}"

url() { # TEMPLATE ID: the platform's templates have a $ID in them, and some a $RUNPOD_POD_ID
	local filled=${1//\$RUNPOD_POD_ID/$RUNPOD_POD_ID}
	echo "${filled//\$ID/$2}"
}

handle() { # reads the input of a job, prints the body that ends it
	jq -c 'if .name then {output: {hello: .name}} else {error: "no name given"} end'
}

while true; do
	# The call is held for a while when there is no job, and then answered with nothing.
	job=$(curl -sf -H "$auth" "$(url "$RUNPOD_WEBHOOK_GET_JOB" "$RUNPOD_POD_ID")") || {
		sleep 1
		continue
	}
	[ -n "$job" ] || continue
	id=$(jq -r .id <<<"$job")
	jq -c .input <<<"$job" | handle |
		curl -sf -H "$auth" --data-binary @- "$(url "$RUNPOD_WEBHOOK_POST_OUTPUT" "$id")&isStream=false" >/dev/null
done
