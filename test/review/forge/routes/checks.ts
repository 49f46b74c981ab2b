import { type Answered, type Asked, listed, ok, page, type Route, repoPath, word } from '../asked.ts';
import { Refusal } from '../auth.ts';
import type { ForgeCheckRun } from '../model.ts';
import * as render from '../render.ts';
import type { Json } from '../schema.ts';

const longestSummary = 65_535;

function output(body: Json): Pick<ForgeCheckRun, 'title' | 'summary'> {
  const { title, summary } = (body['output'] ?? {}) as Json;
  if (word(summary).length > longestSummary) throw new Refusal(422, 'Validation Failed');
  return { title: word(title), summary: word(summary) };
}

function createCheckRun({ forge, repo, body }: Asked): Answered {
  const run: ForgeCheckRun = {
    id: forge.nextId(),
    headSha: word(body['head_sha']),
    externalId: word(body['external_id']),
    name: word(body['name']),
    status: word(body['status']) || 'queued',
    conclusion: body['conclusion'] === undefined ? null : word(body['conclusion']),
    createdAt: forge.now(),
    ...output(body),
  };
  repo.checkRuns.push(run);
  return ok(render.checkRun(forge, repo, run), 201);
}

function updateCheckRun({ forge, repo, params, body }: Asked): Answered {
  const run = repo.checkRuns.find(({ id }) => id === Number(params['check_run_id']));
  if (!run) throw new Refusal(404, 'Not Found');
  Object.assign(run, output(body), { status: word(body['status']) || run.status });
  if (body['conclusion'] !== undefined) run.conclusion = word(body['conclusion']);
  return ok(render.checkRun(forge, repo, run));
}

function listCheckRuns(asked: Asked): Answered {
  const { forge, repo, query } = asked;
  const ref = asked.params['ref'] ?? '';
  const name = query.get('check_name');
  const rows = listed(asked, repo.checkRuns).filter(
    (each) => each.headSha === ref && (name === null || each.name === name),
  );
  const shown = (each: ForgeCheckRun) => render.checkRun(forge, repo, each);
  return page(asked, { path: `${repoPath(asked)}/commits/${ref}/check-runs`, rows, shown, wrap: 'check_runs' });
}

const repository = '/repos/{owner}/{repo}';
const writes = { needs: ['checks:write'] };

export const checkRoutes: readonly Route[] = [
  { ...writes, method: 'POST', path: `${repository}/check-runs`, handle: createCheckRun },
  { ...writes, method: 'PATCH', path: `${repository}/check-runs/{check_run_id}`, handle: updateCheckRun },
  {
    method: 'GET',
    path: `${repository}/commits/{ref}/check-runs`,
    needs: ['checks:read'],
    handle: listCheckRuns,
  },
];
