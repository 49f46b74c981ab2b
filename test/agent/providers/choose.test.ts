import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { derivedKind, modelSettingsOf, modelSource } from '../../../src/agent/providers/index.ts';
import { Config } from '../../../src/config/index.ts';
import { hang, refusal, says, startMockUpstream } from '../../fixtures/upstream/mock-upstream.ts';
import { answerOf, collect } from './helpers.ts';

const source = (settings: Record<string, unknown>) => modelSource(modelSettingsOf(v.parse(Config, settings)));

t.test('without configuration the demo model answers', async (t) => {
  t.match(await source({})(), { name: 'demo', model: 'demo' });
  t.match(await source({ Model: 'gpt' })(), { name: 'demo' }, 'a model alone is no provider');
});

t.test('the kind of a provider is derived from end point, key and model', async (t) => {
  const kind = (endPoint: string, model = '', hasKey = true) => derivedKind({ endPoint, hasKey, model });
  t.equal(kind('', '', false), 'demo');
  t.equal(kind(''), 'openai');
  t.equal(kind('', 'claude-sonnet-5-5'), 'anthropic');
  t.equal(kind('', 'gemini-4-argon'), 'google');
  t.equal(kind('https://api.openai.com/v1'), 'openai');
  t.equal(kind('https://api.anthropic.com/v1'), 'anthropic');
  t.equal(kind('https://generativelanguage.googleapis.com/v1beta'), 'google');
  t.equal(kind('https://generativelanguage.googleapis.com/v1beta/openai'), 'openai-compatible');
  t.equal(kind('http://127.0.0.1:8080/v1', 'claude-opus-5'), 'openai-compatible', 'a proxy speaks chat completions');
  t.equal(kind('nowhere'), 'openai-compatible');
});

t.test('the configured upstream answers with the configured model', async (t) => {
  const upstream = await startMockUpstream(t, (request) => (request.number === 0 ? says(request, 'hi') : [hang]));
  const settings = { EndPoint: upstream.url, ApiKey: 'k', Model: 'vendor/mine', StreamUpstream: false };
  const open = source(settings);
  const provider = await open();
  t.teardown(() => provider.close());
  t.equal(await open(), provider, 'one for all');
  t.match(provider, { name: 'openai', model: 'vendor/mine' }, 'a slash alone names no provider');
  t.equal(provider.serviceOf?.(), new URL(upstream.url).host, 'a compatible server is named by its host');
  t.equal(answerOf(await collect(provider)).text, 'hi');
  t.match(upstream.requests[0]?.body, { model: 'vendor/mine', stream: false });
  t.equal(upstream.requests[0]?.headers.authorization, 'Bearer k');
  const impatient = await source({ ...settings, UpstreamIdleMs: 200 })();
  t.teardown(() => impatient.close());
  await t.rejects(collect(impatient), { message: /silent for 200 ms/ });
});

t.test('name/model reaches the provider of that name with its own key and headers', async (t) => {
  const main = await startMockUpstream(t, (request) => says(request, 'main'));
  const other = await startMockUpstream(t, (request) => says(request, 'other'));
  const provider = await source({
    EndPoint: main.url,
    ApiKey: 'key-of-main',
    Model: 'm',
    Providers: { second: { EndPoint: other.url, ApiKey: 'key-of-second', Headers: { 'X-Team': 'a' } } },
  })();
  t.teardown(() => provider.close());
  t.equal(answerOf(await collect(provider, { messages: [], model: 'second/big' })).text, 'other');
  t.match(other.requests[0]?.body, { model: 'big' });
  t.equal(provider.serviceOf?.('second/big'), 'second');
  t.equal(provider.serviceOf?.('third/big'), new URL(main.url).host);
  t.match(other.requests[0]?.headers, { authorization: 'Bearer key-of-second', 'x-team': 'a' });
  t.equal(answerOf(await collect(provider, { messages: [], model: 'third/big' })).text, 'main');
  t.match(main.requests[0]?.body, { model: 'third/big' });
  t.notMatch(JSON.stringify(main.requests[0]?.headers), /second|x-team/);
  t.equal(provider.facts?.('second/big').owner, 'second/big');
});

t.test('without a model each kind of provider asks for its usual one, and a refusal is a typed error', async (t) => {
  for (const [kind, wire] of [
    ['openai-compatible', 'auto'],
    ['openai', 'chat'],
    ['openai', 'auto'],
    ['anthropic', 'auto'],
    ['google', 'auto'],
  ] as const) {
    const upstream = await startMockUpstream(t, () => refusal(404, { message: 'no such model' }));
    const provider = await source({ Provider: kind, Wire: wire, EndPoint: upstream.url, ApiKey: 'k', Model: '' })();
    t.teardown(() => provider.close());
    await t.rejects(collect(provider), { code: 'upstreamRejected', message: /404/ }, `${kind} ${wire}`);
    const [request] = upstream.requests;
    const asked = request?.body?.model ?? /models\/([^:]+)/.exec(request?.path ?? '')?.[1];
    t.match(asked, /^(?:gpt|claude|gemini)-/, `${kind} ${wire}`);
  }
});

t.test('ApiKeyCommand prints the key; a command that fails is a typed error and is run again', async (t) => {
  const upstream = await startMockUpstream(t, (request) => says(request, 'hi'));
  const script = join(t.testdir(), 'key');
  const settings = { EndPoint: upstream.url, Model: 'm', ApiKeyCommand: [script] };
  const open = source(settings);
  await t.rejects(open(), { code: 'upstreamUnauthorized', message: /ApiKeyCommand failed: .*ENOENT/ });
  const write = (text: string) => {
    writeFileSync(script, `#!/bin/sh\n${text}\n`);
    chmodSync(script, 0o700);
  };
  for (const [text, reason] of [
    ['exit 3', /it ended with 3/],
    ['true', /it printed no key/],
    ['echo two words', /it printed no key/],
  ] as const) {
    write(text);
    await t.rejects(open(), { code: 'upstreamUnauthorized', message: reason });
  }
  write('echo from-the-vault');
  const provider = await open();
  t.teardown(() => provider.close());
  await collect(provider);
  t.equal(upstream.requests[0]?.headers.authorization, 'Bearer from-the-vault');
});

t.test('an invalid end point is an error when the provider is requested', async (t) => {
  const settings = modelSettingsOf(v.parse(Config, { ApiKey: 'k' }));
  const nowhere = { ...settings, main: { ...settings.main, kind: 'openai-compatible' as const, endPoint: 'nowhere' } };
  await t.rejects(modelSource(nowhere)(), { code: 'upstreamUnreachable' });
});
