/** Libraries that people use, against a server in this process. The same suites run against real processes elsewhere. */
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { modelSettingsOf, modelSource } from '../../src/agent/index.ts';
import { Config } from '../../src/config/index.ts';
import { aiSdk } from './clients/ai-sdk.ts';
import { langChain } from './clients/langchain.ts';
import { openaiClient } from './clients/openai.ts';
import { openaiAgents } from './clients/openai-agents.ts';
import { openaiResponses } from './clients/openai-responses.ts';
import { parrot, parrotModel, parrotUpstream } from './clients/parrot.ts';
import type { Target } from './clients/target.ts';
import { chat } from './harness.ts';

const key = 'sk-a-key-of-the-tests';

function suites(t: Test, target: Target): void {
  openaiClient(t, target);
  openaiResponses(t, target);
  openaiAgents(t, target);
  aiSdk(t, target);
  langChain(t, target);
}

t.test('clients read answers of a model in this process', async (t) => {
  const { url, bugs } = await chat(t, parrot(), { api: { ApiKey: key } });
  suites(t, { baseUrl: `${url}/v1`, key });
  t.test('no request was logged as a bug', async (t) => t.strictSame(bugs, []));
});

t.test('clients read answers of an upstream', async (t) => {
  const { endPoint, close } = await parrotUpstream();
  t.teardown(close);
  const config = v.parse(Config, { EndPoint: endPoint, ApiKey: 'key-of-the-upstream', Model: parrotModel });
  const provider = modelSource(modelSettingsOf(config));
  const { url, bugs } = await chat(t, parrot(), { api: { ApiKey: key }, runtime: { provider } });
  suites(t, { baseUrl: `${url}/v1`, key });
  t.test('no request was logged as a bug', async (t) => t.strictSame(bugs, []));
});
