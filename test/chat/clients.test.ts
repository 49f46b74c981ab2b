/** Libraries that people use, against a server in this process. The same suites run against real processes elsewhere. */
import t from 'tap';
import { aiSdk } from './clients/ai-sdk.ts';
import { langChain } from './clients/langchain.ts';
import { openaiClient } from './clients/openai.ts';
import { parrot } from './clients/parrot.ts';
import { chat } from './harness.ts';

const key = 'sk-a-key-of-the-tests';
const { url, bugs } = await chat(t, parrot(), { api: { ApiKey: key } });
const target = { baseUrl: `${url}/v1`, key };

openaiClient(t, target);
aiSdk(t, target);
langChain(t, target);

t.test('none of it was a bug', (t) => {
  t.strictSame(bugs, []);
  t.end();
});
