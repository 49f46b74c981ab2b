/** Words of the machines that run turns and automations. */
import type { MachineWords } from './types.ts';

export const turn: MachineWords = {
  guards: {
    isOverBudget: 'a budget is used up',
    isTooLong: 'the conversation is too long for the model',
    canCompactAfter: 'a shorter conversation may fit',
    canLeaveOut: 'the refused part can be left out',
    canRetry: 'the request may be repeated',
    canFallBack: 'a fallback model is left',
    isRaised: 'the budget was raised',
    reachesRoundLimit: 'the limit of rounds is reached',
    hasCalls: 'the model calls tools',
    isSteered: 'the user has added something',
    mustCheckEnd: 'a hook may object to the end',
    continues: 'a hook wants the turn to continue',
    needsApproval: 'a call needs approval',
    areAllDecided: 'every call is decided',
    hasClientCalls: 'the client must run a call',
    isLooping: 'the model repeats itself',
    isDelegated: 'an agent of another maker does the turns',
    hasCancelled: 'the agent has ended the turn as cancelled',
    isCompleted: 'the turn is complete',
    isFailed: 'the turn has failed',
  },
  actions: {
    recordInterrupter: 'note which side interrupted it',
    recordStorageFailure: 'note that it could not be saved',
    recordFailure: 'note the failure',
    recordUsedUpBudget: 'note the budget that is used up',
    recordBudgetFailure: 'note that the budget ended it',
    addCost: 'add the cost',
    countOmission: 'count the part that is left out',
    emitLeavingOut: 'report the part that is left out',
    scheduleRetry: 'choose the pause before the next try',
    emitRetrying: 'report the next try',
    emitFallingBack: 'report the change of model',
    emitBudgetExpired: 'report that the budget was not raised in time',
    emitBudgetReached: 'ask whether the budget may be raised',
    countFallback: 'count the change of model',
    countTokens: 'add the tokens',
    recordAnswer: 'note the answer',
    setFinishToLength: 'note that the limit of rounds ended it',
    setFinishToToolCalls: 'note that the client must run calls',
    emitLimitReached: 'report the limit of rounds',
    recordCompletion: 'note that it is complete',
    countHeldUp: 'count the objection',
    recordPendingApprovals: 'note the calls that wait for approval',
    addPendingApproval: 'note the call that waits for approval',
    removePendingApproval: 'note the decision',
    recordDelegatedEnd: 'note why the agent has ended',
    recordOwnCancellation: 'note that the agent has cancelled the turn',
    clearPendingApprovals: 'forget undecided calls',
    emitApprovalsExpired: 'decline the calls without an answer',
    emitStuck: 'report that the model repeats itself',
    emitNotConcluded: 'report that the model gave no last answer',
    recordCancellation: 'note that it was cancelled',
    recordStored: 'note that it is saved',
    countCompaction: 'count the summary',
    countRequest: 'count the request',
    emitWaiting: 'ask for approval',
    emitResumed: 'report that it continues',
    emitEnding: 'report that it is ending',
    emitEnded: 'report the end',
  },
};

export const scheduler: MachineWords = {
  guards: { clockWentBack: 'the clock was set back' },
  actions: {
    recordRecovered: 'note how many runs were recovered',
    recordError: 'note the error',
    recordTick: 'note the time',
    recordSetBack: 'note that the clock was set back',
    restoreDueTimes: 'work out due times anew',
    dispatchDue: 'start what is due',
    rearmTicker: 'set the next alarm',
    checkNow: 'check due times now',
  },
};

export const automation: MachineWords = {
  guards: {
    isEnabled: 'it is switched on',
    hasDue: 'a run is due',
    hasRetry: 'another try is planned',
    vanishes: 'it is to be removed after its run',
    isSpent: 'it was to run once, and did',
    isScheduled: 'it was not started by hand',
    mayRetry: 'another try is allowed',
    hasFailed: 'the run failed',
    hasCompleted: 'the run is complete',
  },
  actions: {
    mergeDueTime: 'note the due time',
    enable: 'switch it on',
    disable: 'switch it off',
    emitMissed: 'report the missed run',
    clearDue: 'forget the due time',
    recordTerms: 'take the new settings',
    selectManualRun: 'prepare a run by hand',
    emitCancelled: 'report that the run was cancelled',
    consumeDue: 'take the due time',
    endRun: 'report the end of the run',
    countFailure: 'count the failure',
    planRetry: 'plan another try',
    recordCompletion: 'note that it is complete',
    recordTurn: 'note the turn',
    recordCancel: 'note the request to cancel',
    recordTimeout: 'note that the run took too long',
    releaseSlot: 'free its place',
    requestSlot: 'wait for a place',
    beginRun: 'begin the run',
    interruptRun: 'interrupt the turn',
  },
};

export const checkpoint: MachineWords = {
  guards: {
    waitsForMark: 'files are to be saved',
    waitsForRestore: 'files are to be restored',
    waitsForTask: 'another request waits',
    hasWork: 'a request waits or it is closing',
    isFinished: 'it is closing and no request waits',
    endsTurn: 'a turn has ended',
    isRefused: 'the restore needs a decision of the user',
  },
  actions: {
    addRequest: 'put the request into the queue',
    recordClosing: 'note that it is closing',
    recordFault: 'note the fault',
    takeRequests: 'take the next requests',
    countMarks: 'count the saved states',
    emitDone: 'report the requests as done',
    clearCurrent: 'forget the requests in work',
    emitFailed: 'report the requests as failed',
    countRestore: 'count the restore',
    refuseWaiting: 'refuse the requests that wait',
    clearWaiting: 'empty the queue',
  },
};

export const workspaceHealth: MachineWords = {
  guards: {
    failureLasts: 'the next turn would fail too',
    isImpaired: 'something does not work',
    hasAnswered: 'a turn has been completed',
  },
  actions: {
    recordTurn: 'note how the turn ended',
    recordTools: 'note which tool servers are down',
    sendReport: 'report the health to the Hub',
    repeatReport: 'send the last report again',
  },
};

export const conversation: MachineWords = {
  guards: {
    hasTurn: 'a turn runs',
    isThisTurn: 'it is about this turn',
    isThisTurnCancelled: 'this turn was cancelled',
    hasApprovals: 'an approval is pending',
    isLastApproval: 'no other approval is pending',
    isWaiting: 'this approval is pending',
    hasMessages: 'a message waits to be sent',
    isBeingSent: 'this message is being sent',
  },
  actions: {
    addMessage: 'put the message into the queue',
    removeMessage: 'take the message out of the queue',
    recordLoss: 'note that the connection is lost',
    recordRefusal: 'note why it was refused',
    recordReading: 'take over what the server knows',
    recordSilence: 'note that the server is silent',
    recordTurn: 'note the turn',
    recordTurnEnd: 'note the end of the turn',
    addApproval: 'note the pending approval',
    removeApproval: 'forget the approval',
    sendDecision: 'send the decision',
    probeLink: 'check the connection',
    interruptTurn: 'interrupt the turn',
    sendMessage: 'send the next message',
    clearTurn: 'forget the turn',
    planReconnection: 'choose the pause before the next try',
  },
};

export const changeReview: MachineWords = {
  guards: {
    isReverted: 'this file was put back',
    isRefused: 'others have changed the file since',
  },
  actions: {
    recordKept: 'note that the person keeps the change',
    clearDecision: 'forget the decision about the file',
    planRevert: 'ask for the file as it was before',
    planReturn: 'ask for the change again',
    allowOverwriting: 'allow to overwrite the changes of others',
    recordReading: 'note the decisions that hold',
    recordConflicts: 'note the changes of others',
    clearOrder: 'forget the file that was asked for',
    recordFault: 'note what failed',
    clearFault: 'forget the last failure',
  },
};

export const raceAttempt: MachineWords = {
  guards: {
    isDecided: 'another attempt has passed',
    isOver: 'the turn was interrupted, or another attempt has passed',
    hasPassed: 'the command has succeeded',
  },
  actions: {
    recordDecision: 'note that another attempt has passed',
    interruptTurn: 'interrupt the turn',
    recordFailure: 'note why it has ended',
  },
};

export const raceReview: MachineWords = {
  guards: {
    isRefused: 'others have changed the same files since',
  },
  actions: {
    planApplication: 'ask for the changes of the attempt',
    planUndo: 'ask for the files as they were before',
    allowOverwriting: 'allow to overwrite the changes of others',
    recordConflicts: 'note the changes of others',
    recordFault: 'note what failed',
    clearFault: 'forget the last failure',
    clearOrder: 'forget what was asked for',
  },
};
