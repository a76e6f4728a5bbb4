// Texts of the view `settings`.

export const settings = {
} as const satisfies Record<string, readonly [en: string, zh: string]>
