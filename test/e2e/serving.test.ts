/** Banners of `oratorio api`, `gateway` and `app-server`, on a pipe and at a terminal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { extraToolNames, toolNames } from '../../src/config/index.ts';
import { atTerminal, hasTerminals, keys, plain } from '../cli/terminal.ts';
import { eventually } from '../hub/harness.ts';
import { unusedPort } from '../ports.ts';
import { command, makePlace, oratorioJson, type Place, runningHub } from './harness.ts';

/** A place whose user has this configuration. */
function placeWith(t: Test, config: unknown): Place {
  const place = makePlace(t);
  mkdirSync(place.home, { mode: 0o700 });
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(config));
  return place;
}

/** Runs a serving command until its output matches. */
async function served(t: Test, place: Place, argv: readonly string[], fits = /Ctrl-C/): Promise<string> {
  const child = spawn(process.execPath, [command, ...argv], { cwd: place.root, env: place.env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  t.teardown(() => child.kill('SIGKILL'));
  await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output}`);
      return fits.test(output) || undefined;
    },
    () => `the banner: ${output}`,
  );
  return output;
}

t.test('regression: edge 5 the banner of gateway lists its services and the settings that enable others', async (t) => {
  const Api = { Port: 0 };
  const every = [...toolNames, ...extraToolNames];
  const none = placeWith(t, { Api, DashBoard: { Enabled: false }, EnabledTools: every });
  const empty = await served(t, none, ['gateway', '--workspace', none.workspace('site')]);
  t.match(empty, /No HTTP service is enabled: set Api\.Enabled, AgUi\.Enabled or DashBoard\.Enabled to true/);
  t.notMatch(empty, /chat\/completions/);
  t.match(empty, /tools +15 \(all tools enabled\)\n/, 'every tool is named');
  const page = placeWith(t, { Api, DashBoard: { Port: 0 } });
  const pageOnly = await served(t, page, ['gateway', '--workspace', page.workspace('site')]);
  t.match(pageOnly, /dashboard http:/);
  t.match(pageOnly, /The chat API is not served: set Api\.Enabled to true, or run: oratorio api/);
  t.notMatch(pageOnly, /chat\/completions/);
  t.match(pageOnly, /tools +9 \(all tools enabled\), and 6 more: UpdatePlan, /, 'extra tools are counted apart');
  const both = placeWith(t, { Api: { ...Api, Enabled: true }, DashBoard: { Port: 0 } });
  const whole = await served(t, both, ['gateway', '--workspace', both.workspace('site')]);
  t.match(whole, /chat +POST http:\S+\/v1\/chat\/completions/);
  t.notMatch(whole, /is not served/);
});

t.test(
  'regression: edge 6 the banner counts the tools that the API offers, and warns when it offers no tool',
  async (t) => {
    const bannerOf = async (config: object) => {
      const place = placeWith(t, config);
      return served(t, place, ['api', '--workspace', place.workspace('site')], /Ctrl-C.*\n(?:.*offers no tools)?/);
    };
    t.match(
      await bannerOf({ Api: { Port: 0 } }),
      /tools +9 \(all tools enabled\), and 6 more when .* names them: UpdatePlan, /,
    );
    t.match(
      await bannerOf({ Api: { Port: 0, EnabledTools: ['readfile', 'Exec'] } }),
      /tools +2 \(tools: ReadFile, Exec\)/,
    );
    const every = [...toolNames, ...extraToolNames];
    t.match(await bannerOf({ Api: { Port: 0 }, EnabledTools: every }), /tools +15 \(all tools enabled\)\n/);
    const place = placeWith(t, { EnabledTools: ['Exec'], Api: { Port: 0, EnabledTools: ['ReadFile'] } });
    const empty = await served(t, place, ['api', '--workspace', place.workspace('site')], /offers no tools/);
    t.match(empty, /tools +0 \(tools: none\)/);
    t.match(empty, /The chat API offers no tools: EnabledTools and Api\.EnabledTools name none in common/);
  },
);

t.test(
  'regression: edge 19 a dashboard on another port than configured is named on the terminal and in the record',
  async (t) => {
    const port = await unusedPort();
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    t.teardown(() => holder.close());
    const place = placeWith(t, { Api: { Enabled: true, Port: 0 }, DashBoard: { Port: port } });
    const workspace = place.workspace('site');
    const moved = new RegExp(`Port ${port} was not free: the dashboard listens on (\\d+) instead`);
    const output = await served(t, place, ['gateway', '--workspace', workspace], moved);
    const [, real] = moved.exec(output) ?? [];
    t.match(output, new RegExp(`dashboard http://127\\.0\\.0\\.1:${real}/DashBoard`));
    const record = await oratorioJson(place, 'inspect', workspace);
    t.match(record.serviceStatus.dashboard, {
      state: 'external',
      reason: `Port ${port} was not free; listening on ${real}.`,
    });
    await runningHub(place).shutdown();
  },
);

t.test('regression: H4 the generated key is printed once, at a terminal, and never on a pipe', async (t) => {
  if (!hasTerminals()) return t.pass('there is no script(1) on this machine');
  const place = placeWith(t, { Api: { Port: 0 } });
  const workspace = place.workspace('site');
  const argv = ['api', '--workspace', workspace];
  const atTty = async () => {
    const terminal = atTerminal(t, [process.execPath, command, ...argv], { env: place.env, cwd: place.root });
    await terminal.shows('Ctrl-C stops it.');
    // The output is complete once the process has ended.
    terminal.type(keys.ctrlC);
    await terminal.ended;
    return plain(terminal.screen());
  };
  const first = await atTty();
  const [, key = ''] = /New API key, saved in \S+api\.key: ([\w-]{43})/.exec(first) ?? [];
  t.not(key, '');
  t.match(first, /key +this user needs none; other users send the one in \S+api\.key/);
  t.notMatch(await atTty(), key, 'not at the second start');
  const other = place.workspace('other');
  const piped = await served(t, place, ['api', '--workspace', other]);
  t.match(piped, /other users send the one in \S+api\.key/);
  t.notMatch(piped, /New API key/);
});
