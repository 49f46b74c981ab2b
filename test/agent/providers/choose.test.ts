import t from 'tap';
import { providerSource } from '../../../src/agent/providers/choose.ts';
import { DemoProvider } from '../../../src/agent/providers/demo.ts';
import { OpenAiProvider } from '../../../src/agent/providers/openai.ts';
import { hang, json, says, startMockUpstream } from '../../fixtures/upstream/mock-upstream.ts';
import { collect, told } from './helpers.ts';

const nothing = { endPoint: '', apiKey: '', model: '' };

t.test('without configuration the demo model is used', async (t) => {
  t.ok((await providerSource(nothing)()) instanceof DemoProvider);
  t.ok((await providerSource({ ...nothing, model: 'gpt' })()) instanceof DemoProvider, 'a model alone is no provider');
  for (const settings of [
    { ...nothing, apiKey: 'k' },
    { ...nothing, endPoint: 'http://127.0.0.1:1' },
  ]) {
    const source = providerSource(settings);
    const chosen = await source();
    t.ok(chosen instanceof OpenAiProvider);
    t.equal(await source(), chosen, 'one for all');
    t.equal(chosen.model, 'gpt-4o-mini');
  }
});

t.test('the configured provider is used', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    request.number === 0 ? json(503, {}, { 'retry-after': '0' }) : request.number === 1 ? says(request, 'hi') : [hang],
  );
  const settings = {
    endPoint: upstream.url,
    apiKey: 'k',
    model: 'mine',
    streamUpstream: false,
    retries: 1,
  };
  const provider = await providerSource(settings)();
  t.teardown(() => provider.close());
  t.equal(provider.model, 'mine');
  t.equal(told(await collect(provider)).text, 'hi');
  t.match(upstream.requests[1]?.body, { model: 'mine', stream: false });
  t.equal(upstream.requests[1]?.headers.authorization, 'Bearer k');
  // A provider of its own: what is answered above may take as long as it likes.
  const impatient = await providerSource({ ...settings, idleMs: 200 })();
  t.teardown(() => impatient.close());
  await t.rejects(collect(impatient), { message: /silent for 200 ms/ });
});

t.test('an invalid endpoint is an error when the provider is requested', async (t) => {
  await t.rejects(providerSource({ ...nothing, endPoint: 'nowhere' })(), { code: 'upstreamUnreachable' });
});
