// A worker without any SDK, in JavaScript: it asks for jobs, and answers each with its input in capitals.
const env = process.env;
const url = (template, id) => template.replaceAll("$RUNPOD_POD_ID", env.RUNPOD_POD_ID).replaceAll("$ID", id);
const headers = { Authorization: env.RUNPOD_AI_API_KEY ?? "" };

for (;;) {
  const answer = await fetch(url(env.RUNPOD_WEBHOOK_GET_JOB, env.RUNPOD_POD_ID), { headers });
  if (answer.status !== 200) continue; // the call is held while there is no job
  const { id, input } = await answer.json();
  const text = input.text?.toUpperCase();
  const body = text === undefined ? { error: "no text given" } : { output: { text } };
  await fetch(`${url(env.RUNPOD_WEBHOOK_POST_OUTPUT, id)}&isStream=false`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
}
