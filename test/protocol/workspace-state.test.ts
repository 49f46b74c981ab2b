import t from 'tap';
import { moreProblems, type ProblemFacts, problemsOf } from '../../src/protocol/index.ts';

const report: NonNullable<ProblemFacts['report']> = {
  health: 'failing',
  failure: { code: 'upstreamUnauthorized', message: 'The upstream answered 401.' },
  failuresInARow: 1,
  model: { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' },
  mcpServers: { total: 2, down: [{ name: 'docs', error: 'gone' }], toolProblems: [] },
};
const facts: ProblemFacts = {
  state: 'running',
  workspace: '/w/shop',
  ...{ lastError: null, rest: null, report, configProblem: null, places: {}, isConfigChanged: false },
  ...{ restrictedSettings: [], lostHistory: null, serviceNotes: [] },
};
const codes = (more: Partial<ProblemFacts>) => problemsOf({ ...facts, ...more }).map(({ code }) => code);
const first = (more: Partial<ProblemFacts>) => problemsOf({ ...facts, ...more })[0];

t.test('regression: a changed configuration is a note after every problem', async (t) => {
  const more = { isConfigChanged: true, restrictedSettings: ['McpServers'], serviceNotes: ['Port 1 was not free.'] };
  t.same(codes(more), ['upstreamUnauthorized', 'restricted', 'mcpServerDown', 'portMoved', 'configChanged']);
  t.same(codes({ report: null, isConfigChanged: true }), ['configChanged']);
  t.same([0, 1, 2, 3].map(moreProblems), ['', '', '+1 more problem', '+2 more problems']);
});

t.test('regression: a silent agent server has a remedy that restarts it', async (t) => {
  t.match(first({ state: 'unhealthy', lastError: 'no answer within 2 s' }), {
    what: 'The agent server does not answer: no answer within 2 s',
    next: 'oratorio restart /w/shop',
    remedy: { act: 'restart' },
  });
});

t.test('regression: a dead MCP server is named with its exit and the last line of its output', async (t) => {
  const down = [{ name: 'docs', error: 'It exited (code 3).\nloading\nboom\n' }];
  const [problem] = problemsOf({
    ...facts,
    report: { ...report, failure: null, mcpServers: { total: 1, down, toolProblems: [] } },
  });
  t.equal(problem?.what, '1 of 1 MCP servers is down (docs: It exited (code 3): boom)');
});

t.test('an MCP server that wants a log-in is named with the command, apart from one that is down', (t) => {
  const down = [
    { name: 'docs', error: 'gone' },
    { name: 'tracker', error: 'The server wants you to log in', needsLogin: true },
  ];
  const found = problemsOf({
    ...facts,
    report: { ...report, failure: null, mcpServers: { total: 3, down, toolProblems: [] } },
  });
  t.match(found, [
    { code: 'mcpServerDown', what: '1 of 3 MCP servers is down (docs: gone)' },
    {
      code: 'mcpServerNeedsLogin',
      what: 'The MCP server tracker wants you to log in.',
      where: 'McpServers.tracker',
      next: 'oratorio mcp login tracker --workspace /w/shop',
    },
  ]);
  t.end();
});

t.test('regression: the remedy of a refused key names the file and line that hold it', async (t) => {
  const file = '/w/shop/.oratorio/config.json';
  const places = { ApiKey: { file, line: 3, isUsers: false } };
  t.match(first({ places }), {
    next: `edit ApiKey in ${file}:3, then: oratorio restart /w/shop`,
    remedy: { act: 'editSetting', file, line: 3, keyPath: 'ApiKey' },
  });
  t.match(first({ places: { ApiKey: { file: '/h/config.json', line: 2, isUsers: true } } }), {
    next: 'oratorio login',
    remedy: { act: 'login' },
  });
  t.match(first({}), { next: 'oratorio login' }, 'a key that no file has');
});

t.test('the remedy of an edited value is the trust or the restart that makes it apply', async (t) => {
  const places = { ApiKey: { file: '/w/shop/.oratorio/config.json', line: null, isUsers: false } };
  t.match(first({ places }), { next: /in \/w\/shop\/\.oratorio\/config\.json, then/ }, 'without a line');
  t.match(first({ places, isConfigChanged: true }), { next: 'oratorio restart /w/shop', remedy: { act: 'restart' } });
  const restrictedSettings = ['ApiKey'];
  t.match(first({ places, isConfigChanged: true, restrictedSettings }), { next: 'oratorio trust /w/shop' });
});

t.test('the remedy of a refused model names its place also in the file of the user', async (t) => {
  const failure = { code: 'upstreamRejected', message: '404: no such model' };
  const places = { Model: { file: '/h/config.json', line: 4, isUsers: true } };
  const found = first({ report: { ...report, failure }, places });
  t.equal(found?.next, 'edit Model in /h/config.json:4 (models: oratorio model list), then: oratorio restart /w/shop');
  t.match(
    first({ report: { ...report, failure } }),
    { next: 'oratorio model list' },
    'the usual model of the provider',
  );
});

t.test('the remedy of an invalid setting names its file, line and key', async (t) => {
  const configProblem = { message: 'wrong', where: '/f: A.B', file: '/f', line: 7, key: 'A.B' };
  const rest = { kind: 'invalidConfig', message: 'wrong' };
  const down = { state: 'stopped', report: null, rest, configProblem };
  t.match(first(down), { code: 'invalidConfig', next: 'edit A.B in /f:7, then: oratorio restart /w/shop' });
  t.match(first({ report: null, configProblem: { ...configProblem, key: '' } }), {
    code: 'configUnusable',
    next: 'edit /f:7, then: oratorio restart /w/shop',
  });
});
