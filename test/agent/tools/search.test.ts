import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { text as readAll } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { createWebSearch, type WebSearchSettings } from '../../../src/agent/tools/web/search/web-search.ts';
import { call, problemOf, serve } from './run-tool.ts';

const apiKey = 'key-0123456789';

function webSearch(overrides: Partial<WebSearchSettings> = {}) {
  return createWebSearch({
    provider: 'none',
    url: '',
    apiKey: '',
    timeoutMs: 60_000,
    maxBytes: 100_000,
    secrets: [apiKey],
    ...overrides,
  });
}

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A provider with one answer to everything; records its requests. */
async function provider(t: Test, body: unknown, status = 200, headers: Record<string, string> = {}) {
  const seen: Seen[] = [];
  const answer: RequestListener = async (request, response) => {
    seen.push({ method: request.method, url: request.url, headers: request.headers, body: await readAll(request) });
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  return { url: `http://${await serve(t, answer)}`, seen };
}

const expected = [
  '1. First & best',
  '   https://one.example/a',
  '   What the first says.',
  '',
  '2. https://two.example/',
  '   https://two.example/',
].join('\n');

t.test('without a provider it says honestly what to set, and invents nothing', async (t) => {
  const { text, isError } = await call(webSearch(), { query: 'oratorio' });
  t.match(text, /^Error: WebSearch: no search provider is configured, so nothing was searched\./);
  for (const setting of ['SearchProvider', 'SearchUrl', 'SearchApiKey']) t.match(text, `Tools.Web.${setting}`);
  t.equal(isError, true);
});

t.test('says which setting is missing or wrong', async (t) => {
  const text = async (settings: Partial<WebSearchSettings>) => (await call(webSearch(settings), { query: 'x' })).text;
  t.match(await text({ provider: 'searxng' }), /SearXNG needs the address .*Tools\.Web\.SearchUrl/);
  for (const provider of ['brave', 'exa', 'tavily'] as const) {
    t.match(await text({ provider }), /needs a key: .*Tools\.Web\.SearchApiKey/);
  }
  t.match(await text({ provider: 'searxng', url: 'searx.local' }), /SearchUrl is not an http or https URL/);
});

t.test('SearXNG', async (t) => {
  const { url, seen } = await provider(t, {
    query: 'a b',
    results: [
      { title: 'First &  best', url: 'https://one.example/a', content: 'What the\nfirst says.', engine: 'x' },
      { title: '', url: 'https://two.example/', content: null },
      { title: 'Third', url: 'https://three.example/' },
    ],
  });
  const tool = webSearch({ provider: 'searxng', url: `${url}/searx/` });
  const result = await call(tool, { query: ' a b&c ', maxResults: 2 });
  t.strictSame(result, { text: expected, isError: false });
  t.equal(seen[0]?.url, '/searx/search?q=a+b%26c&format=json');
  t.equal(seen[0]?.headers.authorization, undefined);
});

t.test('Brave', async (t) => {
  const { url, seen } = await provider(t, {
    type: 'search',
    web: {
      results: [
        { title: 'First & best', url: 'https://one.example/a', description: 'What the <strong>first</strong> says.' },
        { url: 'https://two.example/' },
      ],
    },
  });
  const result = await call(webSearch({ provider: 'brave', url, apiKey }), { q: 'a b', count: '2' });
  t.strictSame(result, { text: expected, isError: false });
  t.equal(seen[0]?.url, '/res/v1/web/search?q=a+b&count=2');
  t.equal(seen[0]?.headers['x-subscription-token'], apiKey);
});

t.test('Exa', async (t) => {
  const { url, seen } = await provider(t, {
    results: [
      { title: 'First & best', url: 'https://one.example/a', highlights: ['What the first says.'] },
      { title: null, url: 'https://two.example/' },
    ],
  });
  const result = await call(webSearch({ provider: 'exa', url, apiKey }), { query: 'a b' });
  t.strictSame(result, { text: expected, isError: false });
  t.match(seen[0], { method: 'POST', url: '/search' });
  t.equal(seen[0]?.headers['x-api-key'], apiKey);
  t.strictSame(JSON.parse(seen[0]?.body ?? ''), { query: 'a b', numResults: 5, contents: { highlights: true } });
});

t.test('Tavily', async (t) => {
  const { url, seen } = await provider(t, {
    query: 'a b',
    results: [
      { title: 'First & best', url: 'https://one.example/a', content: 'What the first says.', score: 1 },
      { title: '', url: 'https://two.example/', content: '' },
    ],
  });
  const result = await call(webSearch({ provider: 'tavily', url: `${url}/search`, apiKey }), {
    query: 'a b',
    maxResults: 99,
  });
  t.strictSame(result, { text: expected, isError: false });
  t.match(seen[0], { method: 'POST', url: '/search' });
  t.equal(seen[0]?.headers.authorization, `Bearer ${apiKey}`);
  t.strictSame(JSON.parse(seen[0]?.body ?? ''), { query: 'a b', max_results: 10 });
});

t.test('an empty result names the provider and the query', async (t) => {
  const empty = { type: 'search', results: [] };
  for (const name of ['searxng', 'brave', 'exa', 'tavily'] as const) {
    const { url } = await provider(t, empty);
    const { text, isError } = await call(webSearch({ provider: name, url, apiKey }), { query: 'a "b"' });
    t.match(text, /^\S.* found nothing for "a \\"b\\""\.$/, name);
    t.equal(isError, false);
  }
});

t.test('the refusal of a provider is returned with the next step', async (t) => {
  const cases: [number, Record<string, string>, RegExp][] = [
    [401, {}, /key is not accepted \(401\).*SearchApiKey/],
    [403, {}, /refuses \(403\).*search\.formats/],
    [404, {}, /no search at that address .*SearchUrl/],
    [422, {}, /\(422\)/],
    [429, {}, /too many searches \(429\); try again later\.$/],
    [429, { 'retry-after': '30' }, /try again in 30 s\.$/],
    [500, {}, /status 500/],
    [302, { location: 'http://127.0.0.1:1/' }, /status 302/],
  ];
  for (const [status, headers, pattern] of cases) {
    const { url } = await provider(t, { error: `bad key ${apiKey}` }, status, headers);
    const { text, isError } = await call(webSearch({ provider: 'brave', url, apiKey }), { query: 'x' });
    t.match(text, /^Error: WebSearch: Brave Search: /);
    t.match(text, pattern);
    t.notMatch(text, apiKey);
    t.equal(isError, true);
  }
});

t.test('garbage is an error, never a result', async (t) => {
  const garbage = ['', 'not json', '<html>', '[]', 'null', '{}', { results: 'x' }, { results: [{ title: 'x' }] }];
  for (const name of ['searxng', 'brave', 'exa', 'tavily'] as const) {
    for (const body of [...garbage, { results: [], padding: 'x'.repeat(200_000) }]) {
      const { url } = await provider(t, body);
      const { text, isError } = await call(webSearch({ provider: name, url, apiKey }), { query: 'x' });
      t.match(text, /^Error: WebSearch: .*cannot be used\.$/, `${name} ${JSON.stringify(body).slice(0, 40)}`);
      t.equal(isError, true);
    }
  }
});

t.test('a provider that is not there, or never answers', async (t) => {
  const gone = webSearch({ provider: 'searxng', url: 'http://127.0.0.1:1' });
  t.match((await call(gone, { query: 'x' })).text, /SearXNG: 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)/);
  const silent = await serve(t, () => {});
  const slow = webSearch({ provider: 'searxng', url: `http://${silent}`, timeoutMs: 300 });
  t.match((await call(slow, { query: 'x' })).text, /took longer than 300 ms/);
});

t.test('a redirect of a provider is not followed, and its key stays', async (t) => {
  const other = await provider(t, { results: [] });
  for (const status of [301, 302, 307, 308]) {
    const { url, seen } = await provider(t, '', status, { location: `${other.url}/stolen` });
    const settings = { provider: 'brave', url, apiKey } as const;
    t.match(await call(webSearch(settings), { query: 'x' }), { isError: true }, `${status}`);
    t.equal(seen[0]?.headers['x-subscription-token'], apiKey, 'positive control: the provider gets the key');
  }
  t.same(other.seen, []);
});

t.test('an interrupted turn ends the search and rejects', async (t) => {
  const controller = new AbortController();
  const reason = new Error('interrupted');
  const silent = await serve(t, () => controller.abort(reason));
  const tool = webSearch({ provider: 'searxng', url: `http://${silent}` });
  await t.rejects(call(tool, { query: 'x' }, { signal: controller.signal }), reason);
});

t.test('no secret goes out in a query', async (t) => {
  const { url, seen } = await provider(t, { results: [] });
  const { text } = await call(webSearch({ provider: 'searxng', url }), { query: `what is ${apiKey}` });
  t.match(text, /^Error: refused: the query holds a secret/);
  t.equal(seen.length, 0);
});

t.test('checks its arguments; reads only, and needs no approval', async (t) => {
  const tool = webSearch();
  t.match(problemOf(tool, {}), /query is missing/);
  t.match(problemOf(tool, { query: ' ' }), /query must be what to search for/);
  t.match(problemOf(tool, { query: 'x'.repeat(1001) }), /at most 1000/);
  t.match(problemOf(tool, { query: 'x', maxResults: 0 }), /maxResults must be a number from 1 to 10/);
  t.equal(tool.isReadOnly, true);
  t.equal(await tool.approvalFor({ query: 'x' }, { workspacePath: '/ws' }), undefined);
});
