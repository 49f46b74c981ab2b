/** Text whose addresses have lost their tokens: for everything that people read, copy or save. */
export const withoutTokens = (text: string): string => text.replace(/([?&#](?:access_)?token=)[^\s"'&#<>\\]+/gi, '$1…');
