import { homeDirectory } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import { DraftSubmissions } from './draft-submissions.ts';
import { endThread } from './end-thread.ts';
import { type AgentLimits, defaultAgentLimits } from './limits.ts';
import { reviewPrompt } from './prompt.ts';
import { AgentServers } from './servers.ts';
import { runSession } from './session.ts';
import type { ReviewAgent, ReviewAssignment, ReviewHooks, ReviewSubmission } from './types.ts';

export interface ReviewAgentOptions {
  /** Reads the current settings for each review. */
  readonly settings: () => BackendSettings;
  readonly logger: Logger;
  /** The user's home of Oratorio, where its Hub is found. Default: the home that the environment names. */
  readonly home?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly limits?: Partial<AgentLimits>;
}

/** Reviews by the agent servers of the workspaces; connections are made when they are first needed. */
export function createReviewAgent(options: ReviewAgentOptions): ReviewAgent {
  const { settings, logger, env = process.env, home = homeDirectory(env) } = options;
  const limits = { ...defaultAgentLimits, ...options.limits };
  const servers = new AgentServers({ settings, home, limits, logger });

  async function review(assignment: ReviewAssignment, hooks: ReviewHooks): Promise<ReviewSubmission> {
    const { run, item, prepared, workspacePath } = assignment;
    hooks.signal.throwIfAborted();
    const server = await servers.connect(workspacePath, hooks.signal);
    const { MaxDiffBytes: maxDiffBytes, MinSeverity } = settings().Review;
    const { minSeverity = MinSeverity } = assignment;
    const submission = await runSession({
      server,
      connect: (signal) => servers.connect(workspacePath, signal),
      submissions: new DraftSubmissions(assignment, limits),
      prompt: reviewPrompt(assignment, { limits, maxDiffBytes, minSeverity }),
      hooks,
      limits,
      logger,
      workspacePath,
      worktreePath: prepared.worktreePath,
      displayName: `Review of ${item.repositoryKey}#${item.number}, attempt ${run.attempt}`.slice(0, maxNameLength),
    });
    const { threadId, turnId, findings, resolved } = submission;
    const counts = { findings: findings.length, resolved: resolved.length };
    logger.info('a review was handed in', { runId: run.runId, threadId, turnId, ...counts });
    return submission;
  }

  return {
    review,
    async interrupt(workspacePath, threadId) {
      await endThread(await servers.connect(workspacePath), threadId, limits);
    },
    async traceUrl(workspacePath, threadId) {
      const dashboard = await servers.dashboard(workspacePath);
      if (!dashboard) return undefined;
      return `${dashboard}#/sessions/${encodeURIComponent(threadId)}`;
    },
    status: (workspacePath) => servers.status(workspacePath),
    close: () => servers.close(),
  };
}

const maxNameLength = 200;
