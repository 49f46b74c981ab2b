/** Words of the machines of the review backend and of its server. */
import type { MachineWords } from './types.ts';

export const reviewRun: MachineWords = {
  guards: {
    resumesPublishing: 'it was being published before',
    resumesDrafting: 'it was being written before',
    isCancelRequested: 'it was cancelled meanwhile',
    exceedsAttempts: 'every attempt is used up',
    isSuperseded: 'a newer commit is there',
    isUnwanted: 'the settings want no review',
    hasNothingToReview: 'nothing has changed that is reviewed',
    isRetryable: 'another attempt may succeed',
    hasAttemptsLeft: 'an attempt is left',
    mustPublish: 'the review is to be published',
    isPending: 'the forge has not accepted it yet',
  },
  actions: {
    recordExhaustedAttempts: 'note that every attempt is used up',
    recordReason: 'note why there is no review',
    recordFailure: 'note the failure',
    recordStall: 'note that the agent fell silent',
    recordDeadline: 'note that it took too long',
    emitFailure: 'report the failure',
  },
};

export const databaseOutage: MachineWords = {
  guards: { isReportDue: 'the last report is a minute old' },
  actions: {
    recordBegin: 'note the first failure',
    countFailure: 'count the failure',
    recordReport: 'note the time of the report',
    emitBegin: 'report the outage',
    emitReminder: 'report that it lasts',
    emitEnd: 'report that it is over',
  },
};

export const stackChange: MachineWords = {
  guards: { hasPhase: 'a phase is left', mustUndo: 'the change is to be undone' },
  actions: { recordFailure: 'note the failure', advance: 'go to the next phase' },
};

export const webhookIngress: MachineWords = {
  guards: { wasEnabled: 'it was on before' },
  actions: {
    clearFailure: 'forget the failure',
    recordFailure: 'note the failure',
    recordEnabled: 'note that it is on',
    recordDisabled: 'note that it is off',
  },
};
