/** Words of the machines that supervise processes. */
import type { MachineWords } from './types.ts';

const supervisedGuards = {
  isThisIncarnation: 'it is about this process',
  mustNotRestart: 'no restart is wanted',
  exceedsFailureLimit: 'it has failed too often',
} as const;

const supervisedActions = {
  beginIncarnation: 'begin a new process life',
  killProcess: 'kill the process at once (SIGKILL)',
  terminateProcess: 'ask the process to end (SIGTERM)',
  releaseProcess: 'stop watching the process',
  clearProcess: 'forget the process',
  recordPid: 'note the process id',
  recordExit: 'note how the process ended',
  recordFailure: 'note the failure',
  recordFailureTime: 'count the failure',
  recordSpawnFailure: 'note why it could not start',
  recordStartTimeout: 'note that the start took too long',
  recordKillTimeout: 'note that it survived SIGKILL',
  recordReadiness: 'note that it answers',
  recordUnhealthy: 'note that it does not answer',
  recordRecovery: 'note that it answers again',
  countProbeFailure: 'count the missing answer',
  resetProbeFailures: 'forget missing answers',
  planRestart: 'choose the pause before the restart',
  resetForManualStart: 'forget earlier failures',
  spawnProcess: 'start the process',
} as const;

export const hub: MachineWords = {
  guards: { won: 'no other Hub runs', shutdownIsRequested: 'a shutdown is requested' },
  actions: {
    recordShutdown: 'note the request to shut down',
    recordError: 'note the error',
    recordAddress: 'note its address',
    recordAddressProblem: 'note what is wrong with the published address',
    publishAddress: 'publish its address',
    recordAddressPublished: 'note that the address is published',
    recordPublishFailure: 'note that the address could not be published',
    recordAdopted: 'note how many agent servers it took over',
    recordDrainTimeout: 'note that the agent servers did not end in time',
    emitStarted: 'report the start',
    emitStopping: 'report the end',
  },
};

export const agentServer: MachineWords = {
  guards: {
    ...supervisedGuards,
    isAdopting: 'only a running server may be taken over',
    isOurs: 'the Hub may end this server',
    lostLockRace: 'another server took the workspace first',
    hasProcess: 'a process is left',
    mustReplaceSidecar: 'another sidecar is wanted',
    needsSidecar: 'a sidecar must start first',
    adoptsSidecar: 'its sidecar must be found first',
    sidecarGaveUp: 'the sidecar gave up',
    isEnding: 'the process is ending already',
    exceedsIdleLimit: 'it was idle for too long',
    reachesFailureThreshold: 'too many answers are missing in a row',
    mayRestart: 'automatic restarts are on',
    endsUnhealthyRun: 'it was ended because it did not answer',
    restartFollowsStop: 'a restart was asked for',
    recoveryExceedsFailureLimit: 'it stopped answering too often',
    recoveryFollowsStop: 'it is to recover',
    hasSidecar: 'a sidecar is left',
  },
  actions: {
    ...supervisedActions,
    recordSidecarRunning: 'note that the sidecar runs',
    emitSidecarRunning: 'report that the sidecar runs',
    recordSidecarUnhealthy: 'note that the sidecar does not answer',
    emitSidecarUnhealthy: 'report that the sidecar does not answer',
    recordSidecarExit: 'note that the sidecar ended',
    emitSidecarExited: 'report that the sidecar ended',
    recordSidecarFailure: 'note the failure of the sidecar',
    clearSidecar: 'forget the sidecar',
    releaseSidecar: 'stop watching the sidecar',
    selectSidecar: 'choose the sidecar that was asked for',
    startSidecar: 'start the sidecar',
    stopSidecar: 'stop the sidecar',
    restartSidecar: 'start the sidecar again if it has ended',
    restoreProvenSidecar: 'go back to the sidecar that worked',
    recordPendingSidecar: 'remember the sidecar for the next restart',
    permitStart: 'allow a new process',
    forbidStart: 'allow no new process',
    recordStopReason: 'note why it is stopped',
    deferRequest: 'do what is asked afterwards',
    applyDeferredRequest: 'do what was asked meanwhile',
    retryAfterLockRace: 'look for the other server',
    recordPreparation: 'note the settings and the server that runs already',
    emitPorts: 'report its ports',
    emitStarting: 'report the start',
    recordForcedExit: 'note how the killed process ended',
    recordEnding: 'note that the process is ending',
    countRecovery: 'count the automatic restart',
    recordSpawnRequest: 'note that a process is wanted',
    recordRunning: 'forget earlier errors',
    emitRunning: 'report that it runs',
    emitUnhealthy: 'report that it does not answer',
    emitExited: 'report that it ended',
    emitStopped: 'report that it is stopped',
    clearRestartDelay: 'forget the pause',
    recordGivingUp: 'note that it gave up',
    resetToStopped: 'forget everything about the last run',
  },
};

export const apiProxy: MachineWords = {
  guards: {
    ...supervisedGuards,
    reachesFailureThreshold: 'too many answers are missing in a row',
    mayRestart: 'automatic restarts are on',
    startFollows: 'a start was asked for meanwhile',
  },
  actions: {
    ...supervisedActions,
    clearAdoption: 'start a new process next time',
    requestStart: 'start again when it has ended',
    notifyExited: 'report its end to the agent server',
    notifyRunning: 'report to the agent server that it runs',
    notifyUnhealthy: 'report to the agent server that it does not answer',
    notifyStopped: 'report to the agent server that it is stopped',
  },
};

export const mcpServer: MachineWords = {
  guards: supervisedGuards,
  actions: {
    ...supervisedActions,
    recordClose: 'note how the connection ended',
    releaseConnection: 'stop watching the connection',
    clearConnection: 'forget the connection',
    openConnection: 'open the connection',
    closeConnection: 'close the connection',
    recordFacts: 'note its name, version and tools',
    clearFacts: 'forget its tools',
  },
};

export const externalAgent: MachineWords = {
  guards: {
    ...supervisedGuards,
    isWantedAfterSweep: 'a turn has asked for it meanwhile',
    isLastPrompt: 'no other prompt runs',
    isLastCancelled: 'no other prompt was cancelled',
  },
  actions: {
    ...supervisedActions,
    closeInput: 'close its input',
    recordHandshakeFailure: 'note why it could not introduce itself',
    recordHandshakeTimeout: 'note that it did not introduce itself in time',
    recordCancelTimeout: 'note that a cancelled prompt did not end',
    recordLostWorker: 'note that the process which did the work has ended',
    recordFlood: 'note that it writes without bound',
    recordLogin: 'note that it wants a log-in',
    countPrompt: 'count the prompt',
    countCancelled: 'count the cancelled prompt',
    discountPrompt: 'count one prompt less',
    noteWanted: 'note that a turn waits for it',
  },
};

export const backgroundProcess: MachineWords = {
  guards: {},
  actions: {
    recordPid: 'note the process id',
    recordRefusal: 'note why it could not start',
    recordStopper: 'note which side stopped it',
    recordExit: 'note how the process ended',
    recordSurvivors: 'note the processes that are left',
    recordFault: 'note the fault',
    spawnCommand: 'start the command',
  },
};
