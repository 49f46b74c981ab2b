/** Steps that each command plans, their order, and that none of them shows a secret. */
import t from 'tap';
import { parseEnv, readBackendConfig } from '../../../src/deploy/files/index.ts';
import { planAddRepository } from '../../../src/deploy/plan/add-repository.ts';
import { planDisable } from '../../../src/deploy/plan/disable.ts';
import { planEnable, webhookSecret } from '../../../src/deploy/plan/enable.ts';
import { planInit } from '../../../src/deploy/plan/init.ts';
import { planRestart } from '../../../src/deploy/plan/restart.ts';
import { planUpgrade } from '../../../src/deploy/plan/upgrade.ts';
import { viewOf } from '../../../src/deploy/plan/view.ts';
import {
  app,
  config,
  contentOf,
  directory,
  enableFacts,
  env,
  initFacts,
  lib,
  outline,
  secrets,
  upgradeFacts,
} from './facts.ts';

const added = {
  directory,
  config,
  repository: lib,
  url: 'git@github.com:octo/lib.git',
  autoReview: false,
  user: { uid: 1000, gid: 1000, isOther: false },
  restarts: true,
} as const;

t.test('init: checkouts, files, then ports, images, start and health; it keeps completed steps', (t) => {
  const plan = planInit(initFacts);
  t.strictSame(outline(plan), [
    'checkouts: makeDirectory(workspace) clone(workspace/octo__app)',
    [
      'files: makeDirectory(secrets) writeFile(secrets/github-app.pem) writeFile(.env) writeFile(oratorio.config.json)',
      'makeDirectory(agent) makeDirectory(agent/home) writeFile(agent/config.json) writeFile(agent/.gitignore)',
      'makeDirectory(workspace/.oratorio) writeFile(.gitignore)',
      'writeFile(docker-compose.yml) writeFile(.server/images.json)',
    ].join(' '),
    'ports: checkPorts checkPorts',
    'validate: checkComposition',
    'images: pullImages(agent,backend)',
    'start: start(agent,backend)',
    'health: awaitHealthy(agent,backend)',
  ]);
  t.equal(plan.onFailure, 'keep');
  const { values, problems } = parseEnv(contentOf(plan, '.env') ?? '');
  t.strictSame(problems, []);
  t.match(Object.fromEntries(values), { ORATORIO_MODEL_API_KEY: secrets.apiKey, ORATORIO_UID: '1000' });
  t.notOk(values.get(webhookSecret), 'no gateway, no secret of it');
  t.end();
});

t.test('init that does not start anything asks for no port and no image', (t) => {
  t.strictSame(
    planInit({ ...initFacts, starts: false }).phases.map(({ name }) => name),
    ['checkouts', 'files'],
  );
  t.end();
});

t.test('files that root makes are given to the user of the containers; an existing key is not written', (t) => {
  const user = { uid: 10_001, gid: 10_001, isOther: true };
  const steps = outline(planInit({ ...initFacts, user, privateKey: null })).join(' ');
  t.match(steps, /giveTo\(secrets\).*giveTo\(oratorio\.config\.json\).*giveTo\(workspace\)/);
  t.notMatch(steps, 'github-app.pem');
  t.end();
});

t.test('add-repo: the checkout first, then the settings, then a backend that reads them', (t) => {
  const plan = planAddRepository(added);
  t.strictSame(outline(plan), [
    'checkouts: clone(workspace/octo__lib)',
    'files: writeFile(oratorio.config.json)',
    'validate: checkComposition pullImages(backend)',
    'recreate: start(backend) awaitHealthy(backend)',
  ]);
  t.equal(plan.onFailure, 'undo');
  const { repositories } = readBackendConfig(contentOf(plan, 'oratorio.config.json') ?? '');
  t.strictSame(
    repositories.map(({ repository, autoReview }) => [repository, autoReview]),
    [
      ['octo/app', true],
      ['octo/lib', false],
    ],
  );
  t.strictSame(
    planAddRepository({ ...added, restarts: false }).phases.map(({ name }) => name),
    ['checkouts', 'files'],
  );
  const again = planAddRepository({ ...added, repository: app, url: 'x', autoReview: true });
  t.strictSame(
    again.phases.map(({ name }) => name),
    ['checkouts', 'files'],
    'what is there needs no restart',
  );
  t.end();
});

t.test('webhook enable: its phases are those of the machine, files after ports, start after validation', (t) => {
  t.strictSame(outline(planEnable(enableFacts)), [
    'validating:',
    'secret:',
    'ports: checkPorts',
    'files: writeFile(.env) writeFile(Caddyfile) writeFile(docker-compose.webhook.yml)',
    'validate: checkComposition pullImages(webhook-gateway) checkGateway',
    'start: start(webhook-gateway)',
    'recreate: start(backend) awaitHealthy(backend,webhook-gateway)',
  ]);
  t.end();
});

t.test('webhook enable reveals a new secret, and no other', (t) => {
  const made = planEnable(enableFacts);
  t.strictSame(made.reveals, [webhookSecret]);
  const kept = planEnable({ ...enableFacts, secret: { value: secrets.webhook, isNew: false, isChanged: false } });
  t.strictSame(kept.reveals, []);
  for (const plan of [made, kept]) {
    const { values } = parseEnv(contentOf(plan, '.env') ?? '');
    t.equal(values.get(webhookSecret), secrets.webhook);
    t.equal(values.get('ORATORIO_SERVICE_TOKEN'), secrets.serviceToken, 'the rest stays');
  }
  t.end();
});

t.test('webhook disable: container, overlay and Caddyfile; nothing where there is no gateway', (t) => {
  t.strictSame(outline(planDisable(directory, true)), [
    'stopping: removeServices(webhook-gateway)',
    'removing: removeFile(docker-compose.webhook.yml) removeFile(Caddyfile)',
  ]);
  t.strictSame(outline(planDisable(directory, false)), ['stopping:', 'removing:']);
  t.end();
});

t.test('restart makes only the named containers again', (t) => {
  t.strictSame(outline(planRestart(directory, ['agent'], upgradeFacts.ports)), [
    'validate: checkComposition',
    'images: pullImages(agent) checkPorts',
    'start: start(agent)',
    'health: awaitHealthy(agent)',
  ]);
  t.end();
});

t.test('upgrade: files and every check first, then the state, then one service after the other', (t) => {
  const plan = planUpgrade(upgradeFacts);
  t.strictSame(outline(plan), [
    'files: writeFile(.env) writeFile(docker-compose.yml) writeFile(docker-compose.webhook.yml) writeFile(.server/images.json)',
    'validate: checkComposition pullImages(agent,backend,webhook-gateway) checkGateway checkPorts checkPorts',
    'backup: saveState',
    [
      'start: start(agent) awaitHealthy(agent) start(backend) awaitHealthy(backend)',
      'start(webhook-gateway) awaitHealthy(webhook-gateway)',
    ].join(' '),
    'health: awaitHealthy(agent,backend,webhook-gateway)',
  ]);
  t.equal(plan.onFailure, 'undo');
  t.equal(parseEnv(contentOf(plan, '.env') ?? '').values.get('ORATORIO_IMAGE'), 'oratorio@sha256:3');
  const without = outline(planUpgrade({ ...upgradeFacts, hasIngress: false })).join(' ');
  t.notMatch(without, 'webhook');
  t.end();
});

t.test('a view of any plan shows every step in words, and no secret', (t) => {
  const plans = [
    planInit(initFacts),
    planAddRepository(added),
    planEnable(enableFacts),
    planDisable(directory, true),
    planRestart(directory, ['backend'], upgradeFacts.ports),
    planUpgrade(upgradeFacts),
  ];
  for (const plan of plans) {
    const view = viewOf(plan);
    t.strictSame(Object.keys(view), ['command', 'directory', 'onFailure', 'phases', 'notes']);
    for (const [at, { steps }] of plan.phases.entries()) {
      t.equal(view.phases[at]?.steps.length, steps.length);
      t.ok(view.phases[at]?.steps.every((sentence) => /^[a-z]+ /.test(sentence)));
    }
    const text = JSON.stringify(view);
    for (const secret of Object.values(secrets)) t.notOk(text.includes(secret));
    t.notOk(text.includes(env));
  }
  t.end();
});
