// Texts of the view `chat`.

export const chat = {
} as const satisfies Record<string, readonly [en: string, zh: string]>
