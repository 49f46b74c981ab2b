/** A process of its own that prepares one review, for tests of concurrent processes and of the files that a killed one leaves. */
import { openReviewGit } from '../../../src/review/git/index.ts';

const { root, workspace, endpoint, base, head, runId } = JSON.parse(process.argv[2] ?? '{}');
const reviews = await openReviewGit({
  worktreeRoot: root,
  gitEndpoint: endpoint,
  allowFileProtocol: true,
  retention: { succeededMs: 0, failedMs: 0 },
});
await reviews.prepare({
  runId,
  repository: { instance: 'forge.test', owner: 'acme', name: 'widgets' },
  workspacePath: workspace,
  number: 7,
  headSha: head,
  baseRef: 'main',
  baseSha: base,
  sinceSha: null,
  token: async () => null,
});
await reviews.close();
