/** A Hub whose parent has left descriptors open: an editor, a terminal or a test runner. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, oratorio, runningHub } from './harness.ts';

const isLinux = process.platform === 'linux';
/** Numbers are far from those that Node gives out. */
const leaked = /\b(?:300|301|302|303) -> /;
const listing = 'ls -l /proc/self/fd';

t.test('regression: H47 descriptors of the parent of the Hub reach no program', { skip: !isLinux }, async (t) => {
  const place = makePlace(t);
  const outside = join(place.root, 'outside');
  mkdirSync(outside);
  const list = (name: string) => ({
    transport: 'stdio',
    command: '/bin/sh',
    args: ['-c', `${listing} > ${name}; exit 1`],
  });
  const own = place.workspace('own', { Provider: 'demo', McpServers: { odd: list('mcp.txt') } });
  const stub = fileURLToPath(new URL('../external/stub-agent.mjs', import.meta.url));
  const external = place.workspace('external', {
    Agent: { Kind: 'acp', Name: 'stub', Command: [process.execPath, stub] },
  });

  const open = ['300<"$D"', '301>>"$D/file"', '302< <(true)', '303<>/dev/null'];
  const up = '"$NODE" "$COMMAND" up "$OWN" --no-follow';
  const script = `exec ${open.join(' ')}; ${listing}; ${up} >&2`;
  const variables = { D: outside, NODE: process.execPath, COMMAND: command, OWN: own };
  const inParent = execFileSync('bash', ['-c', script], {
    ...{ cwd: place.root, env: { ...place.env, ...variables }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  });
  t.match(inParent, leaked, 'positive control: programs of the parent have them');

  const run = async (workspace: string, prompt: string) => {
    const { stdout, stderr, code } = await oratorio(place, ['exec', '--workspace', workspace, '--yes', prompt]);
    t.equal(code, 0, stderr);
    return stdout;
  };
  const fromFile = (file: string) =>
    eventually(() => {
      const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
      return text.includes(' 2 -> ') ? text : undefined;
    }, file);
  const seen = {
    exec: await run(own, `run: ${listing}`),
    'an MCP server': await fromFile(join(own, 'mcp.txt')),
    'a terminal of an external agent': await run(external, `terminal ${listing}`),
    'an external agent': await run(external, `run ${listing} > agent.txt`).then(() =>
      fromFile(join(external, 'agent.txt')),
    ),
  };
  for (const [program, text] of Object.entries(seen)) {
    t.match(text, / 1 -> /, `${program} has listed its descriptors`);
    t.notMatch(text, leaked, program);
  }
  const { client, lock } = runningHub(place);
  const servers = await Promise.all([own, external].map((workspace) => client.byWorkspace(workspace)));
  for (const pid of [lock.pid, ...servers.map((server) => server.pid)]) {
    const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
    t.same(
      links.filter((link) => link.startsWith(outside)),
      [],
      `process ${pid}`,
    );
  }
});

/** Target of the link; empty for a descriptor that was closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
