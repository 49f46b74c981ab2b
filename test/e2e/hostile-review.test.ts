/** The review backend on a clone with everything hostile, and on a pull request that brings the same along. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startAttacker, startVictim } from '../fixtures/hostile-clone/attacker.ts';
import { buildHostileRepository, git } from '../fixtures/hostile-clone/build.ts';
import { isAlive } from '../hub/harness.ts';
import { ends, startScene } from './review-harness/index.ts';
import { faults, firstChange, onMain } from './review-harness/shop.ts';

const modelKey = 'sk-model-key-of-the-user-4711';

t.test('regression: C1 a review of hostile code on a hostile clone runs nothing and sends no key', async (t) => {
  const attacker = await startAttacker(t);
  const victim = await startVictim(t);
  let [markers, repository] = ['', ''];
  const scene = await startScene(t, {
    files: onMain,
    faults: Object.values(faults),
    checkout(place, reviewer) {
      const at = (name: string): string => {
        const directory = join(place.root, name);
        mkdirSync(directory, { recursive: true, mode: 0o700 });
        return directory;
      };
      const clone = join(place.root, 'clone');
      const outside = at('outside');
      writeFileSync(join(outside, 'private.txt'), 'private words of the user\n');
      markers = at('markers');
      repository = buildHostileRepository({
        directory: at('attacker'),
        ...{ markers, attacker: attacker.url, victim: victim.identity, clone, outside },
        automationPrompt: 'hello',
      });
      git(place.root, 'clone', '--quiet', repository, clone);
      at('home');
      const user = { EndPoint: reviewer.url, ApiKey: modelKey, Model: 'model-of-the-user', UpstreamRetries: 0 };
      writeFileSync(join(place.home, 'config.json'), JSON.stringify(user), { mode: 0o600 });
      return clone;
    },
  });
  const hostile = ['.oratorio/config.json', 'AGENTS.md', 'setup.sh', 'mcp-server.mjs'];
  const brought = Object.fromEntries(hostile.map((file) => [file, readFileSync(join(repository, file), 'utf8')]));
  const { headSha } = await scene.openPull(7, { ...firstChange, ...brought });

  const run = await scene.until('the review has ended', async () => {
    const found = (await scene.api.pull(7))?.runs.find((each) => each.headSha === headSha);
    return found && ends.includes(found.state) && found;
  });
  t.match(run, { state: 'done' }, 'the pull request is reviewed');
  const findings = await scene.until(
    'the findings are there',
    async () => (await scene.api.pull(7))?.drafts[0]?.findings,
  );
  t.match(JSON.stringify(findings), faults.loop.title, 'and its faults are found');

  t.same(readdirSync(markers), [], 'no program of the clone or of the pull request has run');
  t.equal(attacker.received(), '', 'nothing has reached the attacker');
  t.ok(isAlive(victim.child.pid ?? 0), 'the process that the forged lock names lives');
  t.ok(scene.reviewer.turns.length > 0);
  for (const { request } of scene.reviewer.turns) {
    t.equal(request.headers.authorization, `Bearer ${modelKey}`);
    t.notMatch(JSON.stringify(request.body.messages), 'private words', 'no link leads out');
  }
  const record = await scene.hub.client.byWorkspace(scene.workspace);
  t.equal(record.trust, 'restricted');
  const log = scene.backends.map((backend) => backend.log).join('');
  t.match(
    log,
    /is restricted: .*McpServers.*oratorio trust/,
    'the log of the backend says what is ignored, and what to do',
  );
  t.notMatch(log, modelKey);
});
