/** The libraries that people use, against the installed product: `oratorio api`, and a server that a Hub manages. */
import { spawn } from 'node:child_process';
import t, { type Test } from 'tap';
import { aiSdk } from '../chat/clients/ai-sdk.ts';
import { langChain } from '../chat/clients/langchain.ts';
import { openaiClient } from '../chat/clients/openai.ts';
import { openaiAgents } from '../chat/clients/openai-agents.ts';
import { openaiResponses } from '../chat/clients/openai-responses.ts';
import { parrotModel, parrotUpstream } from '../chat/clients/parrot.ts';
import type { Target } from '../chat/clients/target.ts';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, type Place, startHub } from './harness.ts';

const key = 'sk-a-key-of-the-tests';

function suites(t: Test, target: Target): void {
  openaiClient(t, target);
  openaiResponses(t, target);
  openaiAgents(t, target);
  aiSdk(t, target);
  langChain(t, target);
}

/** A workspace whose model is the parrot, and whose API is on any free port. */
async function parrotWorkspace(t: Test, place: Place): Promise<string> {
  const { endPoint, close } = await parrotUpstream();
  t.teardown(close);
  return place.workspace('site', {
    EndPoint: endPoint,
    ApiKey: 'key-of-the-upstream',
    Model: parrotModel,
    UpstreamRetries: 0,
    Api: { Enabled: true, Port: 0, ApiKey: key },
  });
}

t.test('oratorio api serves the OpenAI clients', async (t) => {
  const place = makePlace(t);
  const workspace = await parrotWorkspace(t, place);
  const child = spawn(process.execPath, [command, 'api', '--workspace', workspace], {
    cwd: place.root,
    env: place.env,
  });
  let output = '';
  const keep = (text: unknown) => {
    output += String(text);
  };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', keep);
  const [, url] = await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output}`);
      return /POST (http:\S+)\/v1\/chat\/completions[\s\S]*Ctrl-C/.exec(output) ?? undefined;
    },
    () => `the banner: ${output}`,
  );
  t.match(output, /model\s+parrot at 127\.0\.0\.1:\d+\n/);
  t.match(output, /tools\s+9 \(all tools enabled\)/);
  suites(t, { baseUrl: `${url}/v1`, key });
});

t.test('a managed server serves the OpenAI clients', async (t) => {
  const place = makePlace(t);
  const workspace = await parrotWorkspace(t, place);
  const hub = await startHub(place);
  const { serviceStatus } = await hub.client.ensure({ workspacePath: workspace });
  t.match(serviceStatus, { api: { state: 'running', reason: null }, agui: { state: 'disabled', reason: String } });
  suites(t, { baseUrl: `${serviceStatus['api']?.url}/v1`, key });
});
