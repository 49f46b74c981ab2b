/** Settings of the runtime's parts as the configuration has them. */
import { join, resolve } from 'node:path';
import type { RuntimeSettings } from '../agent/index.ts';
import type { AutomationsSettings } from '../automations/index.ts';
import { apiApprovalPolicyOf, type Config, directoryName, forksDirectories } from '../config/index.ts';

export function runtimeSettingsOf(config: Config): RuntimeSettings {
  const { Budget, Compaction, SubAgent, Permissions, Quota, Turns } = config;
  return {
    systemPrompt: config.SystemPrompt,
    maxToolCallRounds: config.MaxToolCallRounds,
    maxSessionQueueSize: config.MaxSessionQueueSize,
    compaction: {
      isAutomatic: Compaction.AutoCompactEnabled,
      contextWindow: Compaction.ContextWindow,
      reserveTokens: Compaction.ReserveTokens,
      keepRecentTurns: Compaction.KeepRecentTurns,
    },
    subAgent: {
      maxDepth: SubAgent.MaxDepth,
      maxConcurrency: SubAgent.MaxConcurrency,
      maxToolCallRounds: SubAgent.MaxToolCallRounds,
      model: SubAgent.Model,
      exploreModel: SubAgent.ExploreModel,
    },
    approvalPolicy: Permissions.DefaultApprovalPolicy,
    apiApprovalPolicy: apiApprovalPolicyOf(config.Api),
    approvalTimeoutMs: Permissions.ApprovalTimeoutSeconds * 1_000,
    maxRetries: config.UpstreamRetries,
    fallbackModels: config.FallbackModels,
    quota: { wait: Quota.Wait, maxWaitMs: Quota.MaxWaitHours * 3_600_000 },
    turns: {
      resume: Turns.Resume,
      maxResumes: Turns.MaxResumes,
      resumeWithinHours: Turns.ResumeWithinHours,
      resumeAgents: Turns.ResumeAgents,
    },
    budget: { turnUsd: Budget.TurnUsd, sessionUsd: Budget.SessionUsd, dayUsd: Budget.DayUsd },
  };
}

export function automationsSettingsOf({ Automations }: Config): AutomationsSettings {
  return {
    isEnabled: Automations.Enabled,
    maxConcurrentRuns: Automations.MaxConcurrentRuns,
    turnTimeoutMs: Automations.TurnTimeoutMinutes * 60_000,
    maxRetries: Automations.MaxRetries,
    retryInitialDelayMs: Automations.RetryInitialDelayMs,
    retryMaxDelayMs: Automations.RetryMaxDelayMs,
  };
}

/** Roots of worktrees: in the workspace, beside it (several workspaces share that root), and at the user's choice. */
export function worktreeRootsOf(workspacePath: string, { Permissions }: Config): string[] {
  const usual = [join(workspacePath, directoryName, 'worktrees'), ...forksDirectories(workspacePath)];
  return Permissions.WorktreeRoot === '' ? usual : [...usual, resolve(workspacePath, Permissions.WorktreeRoot)];
}
